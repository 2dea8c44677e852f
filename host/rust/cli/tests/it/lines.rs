//! `run`: every kind of line.

use crate::program::{bq_guard, end_with, envelope};
use serde_json::{Value, json};

#[test]
fn each_line_is_reported_with_its_number() {
    let (one, two) = (envelope("parcel-1"), envelope("parcel-2"));
    let input = format!(
        "{one}\n\n{one}\r\n{{\"meta\":{{}}}}\n  \t\nno json\n{{\"meta\":{{\"id\":7}}}}\n{two}"
    );
    let ended = end_with(&mut bq_guard(["run", "--json"]), input);
    assert_eq!(ended.status, 0, "{ended:?}");
    let (reports, summary) = ended.reports_and_summary();
    let ran = |n: u64, id: Value, reason: Value| {
        json!({"n": n, "id": id, "decision": "run", "reason": reason, "outcome": "succeeded",
               "marked": !id.is_null(), "error": null})
    };
    assert_eq!(
        reports,
        [
            ran(1, json!("parcel-1"), Value::Null),
            json!({"n": 3, "id": "parcel-1", "decision": "skip", "reason": null, "outcome": null,
                   "marked": false, "error": null}),
            ran(4, Value::Null, json!("absent")),
            ran(6, Value::Null, json!("malformed")),
            ran(7, Value::Null, json!("unusable")),
            ran(8, json!("parcel-2"), Value::Null),
        ]
    );
    assert_eq!(
        summary,
        json!({"lines": 8, "blank": 2, "succeeded": 5, "skipped": 1, "failed": 0, "unmarked": 0,
               "without_id": 3, "not_handled": 0, "first_not_handled": null,
               "input_left": false, "stopped": null})
    );
}

#[test]
fn an_id_is_reported_as_it_is() {
    let id = "a\"\\\u{1b}[2J\u{7f}é📦\n";
    let ended = end_with(&mut bq_guard(["run", "--json"]), envelope(id));
    assert_eq!(ended.reports_and_summary().0[0]["id"], id);

    let ended = end_with(&mut bq_guard(["run"]), envelope(id));
    assert!(!ended.err.contains('\u{1b}'), "{:?}", ended.err);
}

#[test]
fn a_line_over_the_limit_keeps_no_other_from_being_handled() {
    let long = format!(
        "{{\"meta\":{{\"id\":\"long\"}},\"data\":\"{}\"}}",
        "x".repeat(2_000)
    );
    let input = format!(
        "{}\n{long}\n{}\n",
        envelope("parcel-1"),
        envelope("parcel-2")
    );
    let ended = end_with(
        &mut bq_guard(["run", "--json", "--max-body", "1KiB"]),
        input,
    );
    assert_eq!(ended.status, 3);
    assert_eq!(
        ended.out().lines().count(),
        2,
        "the long line is not passed on"
    );
    let (reports, summary) = ended.reports_and_summary();
    assert_eq!(reports[0]["outcome"], "succeeded");
    assert_eq!(reports[2]["outcome"], "succeeded");
    assert_eq!(reports[1]["n"], 2);
    assert_eq!(reports[1]["decision"], "error");
    let error = reports[1]["error"].as_str().unwrap();
    assert!(
        error.starts_with("guard: the line has 2033 bytes, the limit is 1024"),
        "{error}"
    );
    assert!(error.contains("--max-body"), "{error}");
    assert_eq!(summary["not_handled"], 1);
    assert_eq!(summary["first_not_handled"], 2);
}

#[test]
fn the_limit_is_sixteen_mebibytes_unless_set() {
    let id = "{\"meta\":{\"id\":\"big\"},\"data\":\"";
    let filled = |bytes: usize| format!("{id}{}\"}}\n", "x".repeat(bytes - id.len() - 2));
    for (bytes, status) in [(16 << 20, 0), ((16 << 20) + 1, 3)] {
        let ended = end_with(&mut bq_guard(["run", "--quiet"]), filled(bytes));
        assert_eq!(ended.status, status, "{bytes}: {}", ended.err);
        assert_eq!(ended.out.is_empty(), status == 3);
    }
    // A limit of one's own is told to the component, too.
    let ended = end_with(
        &mut bq_guard(["run", "--quiet", "--claim", "--max-body", "17MiB"]),
        filled((16 << 20) + 1),
    );
    assert_eq!(ended.status, 0, "{}", ended.err);
}

#[test]
fn an_endless_line_takes_no_memory() {
    // Sixty-four times the limit, and then a line that is fine.
    let mut input = vec![b'x'; 64 << 20];
    input.extend_from_slice(format!("\n{}\n", envelope("parcel-1")).as_bytes());
    let mut command = bq_guard(["run", "--json", "--max-body", "1MiB"]);
    let ended = end_with(&mut command, input);
    let (reports, _) = ended.reports_and_summary();
    assert_eq!(reports[0]["decision"], "error");
    assert_eq!(reports[1]["outcome"], "succeeded");
}

#[test]
fn an_empty_input_is_handled() {
    let ended = end_with(&mut bq_guard(["run"]), "");
    assert_eq!(ended.status, 0);
    assert!(ended.out.is_empty());
    assert!(ended.err.contains("0 lines: 0 succeeded"), "{}", ended.err);
}
