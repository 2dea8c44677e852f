//! The same commands on databases.

use crate::program::{Ended, Folder, bq_guard, end, end_with, lines, postgres, until};
use serde_json::json;

fn run(store: &str, arguments: &[&str]) -> Ended {
    end(bq_guard(arguments).env("BQ_GUARD_STORE", store))
}

/// What an operator does, on an empty store with its tables.
fn operated(store: &str) {
    let filter = |input: String| {
        end_with(
            bq_guard(["run", "--quiet"]).env("BQ_GUARD_STORE", store),
            input,
        )
    };
    assert_eq!(filter(lines(["a", "b"])).out(), lines(["a", "b"]));
    assert_eq!(filter(lines(["b", "c", "a"])).out(), lines(["c"]));

    assert_eq!(run(store, &["seen", "a"]).status, 0);
    assert_eq!(run(store, &["seen", "A"]).status, 1);
    assert_eq!(run(store, &["remember", "d e\u{301}"]).status, 0);
    assert_eq!(
        run(store, &["remember", "for ever", "--retention", "forever"]).status,
        0
    );
    let mut ids: Vec<_> = run(store, &["list", "--json"])
        .objects()
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "d e\u{301}", "for ever"]);
    let inspected = &run(store, &["inspect", "for ever", "--json"]).objects()[0];
    assert!(inspected["mark"]["age_ms"].is_u64(), "{inspected}");
    assert!(inspected["mark"]["left_ms"].is_null(), "{inspected}");

    let forgotten = run(store, &["forget", "a"]);
    assert!(
        forgotten.out().contains("mark removed"),
        "{}",
        forgotten.out()
    );
    assert_eq!(filter(lines(["a"])).out(), lines(["a"]), "a replay runs");

    for n in 0..25 {
        let id = format!("short-{n}");
        assert_eq!(
            run(store, &["remember", &id, "--retention", "1ms"]).status,
            0
        );
    }
    let stats = || run(store, &["stats", "--json"]).objects().remove(0);
    until("they have expired", || stats()["expired"] == 25);
    assert_eq!(
        stats(),
        json!({"marks": 5, "leases": 0, "steps": 0, "expired": 25})
    );
    let collected = run(store, &["gc", "--batch", "10", "--json"]);
    assert_eq!(collected.objects(), [json!({"removed": 25})]);
    assert_eq!(stats()["expired"], 0);
    assert_eq!(stats()["marks"], 5);

    let demo = run(store, &["demo"]);
    assert!(
        demo.out().contains("15 deliveries, 6 charges"),
        "{}",
        demo.err
    );
    assert_eq!(stats()["marks"], 5, "it leaves nothing");
}

/// Its records are apart, and none stays.
fn conforms(store: &str) {
    let manifest = "../../../tests/cases/conformance/manifest.json";
    let manifest = format!("{}/{manifest}", env!("CARGO_MANIFEST_DIR"));
    for claim in [&[][..], &["--claim"]] {
        let mut arguments = vec!["conformance", &manifest];
        arguments.extend(claim);
        let ended = run(store, &arguments);
        assert_eq!(ended.status, 0, "{ended:?}");
        assert!(
            ended.out().ends_with(" passed, 0 failed\n"),
            "{}",
            ended.out()
        );
    }
    let stats = run(store, &["stats", "--json", "--consumer", "conformance"]);
    assert_eq!(stats.objects()[0]["marks"], 0);
    assert_eq!(stats.objects()[0]["leases"], 0);
}

#[test]
fn sqlite() {
    let folder = Folder::new();
    let store = format!("sqlite:{}", folder.file("marks.db").display());
    operated(&store);
    conforms(&store);
}

#[test]
fn postgresql() {
    let Some(store) = postgres() else {
        return;
    };
    let ended = run(&store, &["seen", "a"]);
    assert_eq!(ended.status, 3);
    assert!(
        ended.err.contains("migrate"),
        "it says what to do: {}",
        ended.err
    );
    for _ in 0..2 {
        let ended = run(&store, &["migrate"]);
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(!ended.out().is_empty());
    }
    operated(&store);
    conforms(&store);
}
