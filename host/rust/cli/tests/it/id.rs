//! `id`: the verdict on a body.

use crate::program::{Folder, bq_guard, end, end_with, envelope};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn the_shared_table_of_bodies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/cases/bodies");
    let table = std::fs::read(folder.join("manifest.json")).unwrap();
    let table: Vec<Value> = serde_json::from_slice(&table).unwrap();
    assert!(table.len() > 100);
    let mut command = bq_guard(["id", "--json"]);
    for case in &table {
        command.arg(case["file"].as_str().unwrap());
    }
    let ended = end(command.current_dir(folder));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let verdicts = ended.objects();
    assert_eq!(verdicts.len(), table.len());
    for (verdict, case) in verdicts.iter().zip(&table) {
        let (id, reason) = (&case["id"], &case["reason"]);
        assert_eq!(
            *verdict,
            json!({"file": case["file"], "id": id, "reason": reason})
        );
    }
}

#[test]
fn for_a_person_it_says_why() {
    let folder = Folder::new();
    folder.write("good", envelope("parcel-1") + "\n");
    folder.write("two", format!("{0}\n{0}\n", envelope("parcel-1")));
    folder.write("number", r#"{"meta":{"id":7}}"#);
    folder.write("none", r#"{"meta":{}}"#);
    let mut command = bq_guard(["id", "good", "two", "number", "none", "missing"]);
    let ended = end(command.current_dir(folder.path()));
    let lines: Vec<_> = ended.out().lines().collect();
    assert_eq!(lines[0], "good: parcel-1");
    assert!(
        lines[1].starts_with("two: no usable id (malformed): "),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("number: no usable id (unusable): "),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("none: no usable id (absent): "),
        "{}",
        lines[3]
    );
    assert_eq!(lines.len(), 4);
    assert!(ended.err.contains("missing: No such file"), "{}", ended.err);
    assert_eq!(ended.status, 2);
}

#[test]
fn standard_input_is_a_body_too() {
    for arguments in [&["id", "--json"][..], &["id", "--json", "-"]] {
        let ended = end_with(&mut bq_guard(arguments), envelope("a"));
        assert_eq!(
            ended.objects(),
            [json!({"file": "-", "id": "a", "reason": null})]
        );
    }
}

#[test]
fn a_body_over_the_limit_is_not_decided() {
    let ended = end_with(&mut bq_guard(["id", "--json"]), vec![b' '; (16 << 20) + 1]);
    assert_eq!(ended.status, 3);
    let verdict = &ended.objects()[0];
    assert_eq!(verdict["id"], Value::Null);
    assert_eq!(verdict["reason"], Value::Null);
    assert!(
        verdict["error"].as_str().unwrap().starts_with("guard: "),
        "{verdict}"
    );
}
