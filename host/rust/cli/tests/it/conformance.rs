//! `conformance`: manifests of the cross-SDK form.

use crate::program::{Folder, bq_guard, end};
use serde_json::{Value, json};
use std::path::PathBuf;

fn shared_manifest() -> PathBuf {
    let cases = "../../../tests/cases/conformance/manifest.json";
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(cases)
}

fn passes(store: &str) {
    let manifest = shared_manifest();
    let listed: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    let cases = listed["idempotency"]["sequences"]["cases"]
        .as_array()
        .unwrap();
    for claim in [None, Some("--claim")] {
        let mut command = bq_guard(["conformance", "--json", "--store", store]);
        let ended = end(command.arg(&manifest).args(claim));
        assert_eq!(ended.status, 0, "{ended:?}");
        let results = ended.objects();
        assert_eq!(results.len(), cases.len() + 1);
        assert_eq!(results[0]["name"], "dedup_key");
        for (result, case) in results[1..].iter().zip(cases) {
            assert_eq!(result["name"], case["name"]);
            assert_eq!(result["passed"], true);
            assert_eq!(result["effects"], case["expected_effects"]);
        }
    }
}

#[test]
fn the_shared_manifest_in_memory() {
    passes("memory:");
}

#[test]
fn the_shared_manifest_on_redis_leaves_nothing() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    // Of a real consumer, who has nothing to do with this.
    let _: () = redis.command(&["SET", "bq:idemp:parcel-1", "1"]);
    passes(&redis.url());
    assert_eq!(
        redis.command::<Vec<String>>(&["KEYS", "*"]),
        ["bq:idemp:parcel-1"]
    );
}

fn run(manifest: &Value) -> crate::program::Ended {
    let folder = Folder::new();
    folder.write("envelope.json", r#"{"meta":{"id":"the-key"}}"#);
    let file = folder.write("manifest.json", manifest.to_string());
    end(&mut bq_guard([PathBuf::from("conformance"), file]))
}

fn one_case(case: &Value) -> Value {
    json!({"idempotency": {"sequences": {"cases": [case]}}})
}

#[test]
fn ids_that_are_none_run_each_time() {
    let ended = run(&one_case(&json!({
        "name": "none of these is an id",
        "deliveries": [
            {"meta_id": "", "expect_effect": "run", "outcome": "ok"},
            {"meta_id": null, "expect_effect": "run", "outcome": "ok", "forget_before": true},
            {"meta_id": null, "expect_effect": "run"},
            {"expect_effect": "run", "outcome": "throw"},
            {"expect_effect": "run", "outcome": "ok"},
            {"meta_id": 7, "expect_effect": "run", "outcome": "ok"},
            {"meta_id": {"id": "a"}, "expect_effect": "run", "outcome": "ok"},
            {"meta_id": "a", "expect_effect": "run", "outcome": "ok"},
        ],
        "expected_effects": 8,
    })));
    assert_eq!(ended.status, 0, "{}", ended.out());
    assert!(
        ended.out().ends_with("1 passed, 0 failed\n"),
        "{}",
        ended.out()
    );
}

#[test]
fn what_is_not_as_listed_is_told() {
    let delivery = json!({"meta_id": "a", "expect_effect": "run", "outcome": "ok"});
    let twice = json!([delivery, delivery]);
    let ended = run(&one_case(
        &json!({"name": "wrong", "deliveries": twice, "expected_effects": 2}),
    ));
    assert_eq!(ended.status, 1);
    assert!(ended.out().contains("FAILED"), "{}", ended.out());
    assert!(
        ended.out().contains("delivery 2: run expected, was skip"),
        "{}",
        ended.out()
    );

    let ended = run(&one_case(
        &json!({"name": "wrong", "deliveries": [delivery], "expected_effects": 2}),
    ));
    assert_eq!(ended.status, 1);
    assert!(
        ended.out().contains("2 effects expected, were 1"),
        "{}",
        ended.out()
    );

    for (key, status) in [("the-key", 0), ("another", 1)] {
        let dedup_key = json!({"envelope_file": "envelope.json", "expected_key": key});
        let ended = run(&json!({"idempotency": {"dedup_key": dedup_key}}));
        assert_eq!(ended.status, status, "{}", ended.out());
    }
}

#[test]
fn what_is_no_manifest_is_refused() {
    for (manifest, why) in [
        (json!({}), "idempotency"),
        (json!({"idempotency": {}}), "neither"),
        (
            one_case(&json!({"name": "a", "deliveries": [{"expect_effect": "jump"}]})),
            "jump",
        ),
        (
            json!({"idempotency": {"dedup_key":
                {"envelope_file": "missing.json", "expected_key": "a"}}}),
            "missing.json",
        ),
    ] {
        let ended = run(&manifest);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(why), "{}", ended.err);
    }
}
