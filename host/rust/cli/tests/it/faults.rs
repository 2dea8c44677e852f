//! Stores that are down, and processes that are killed.

use crate::program::{Folder, bq_guard, end, end_with, finish, lines, parcels, sorted, until};
use std::process::Command;

/// Writes its id into the ledger; at `parcel-3` it waits until told to go on.
const WAITS_AT_THREE: &str = r#"echo "$BQ_MESSAGE_ID" >> ledger
[ "$BQ_MESSAGE_ID" != parcel-3 ] || while [ ! -e go ]; do sleep 0.02; done"#;

fn run(folder: &Folder, store: &str, count: usize, script: &str) -> Command {
    let ids = parcels(count);
    let input = folder.write("input", lines(ids.iter().map(String::as_str)));
    let mut command = bq_guard(["run", "--json", "--store", store]);
    command.arg(input).args(["--exec", "sh", "-c", script]);
    command.current_dir(folder.path());
    command
}

#[test]
fn a_store_that_is_down_handles_nothing() {
    let port = test_servers::free_port();
    let url = format!("redis://somebody:s3cret-word@127.0.0.1:{port}/0");
    for arguments in [
        &["run", "--exec", "touch", "ran"][..],
        &["seen", "a"],
        &["remember", "a"],
        &["forget", "a"],
        &["inspect", "a"],
        &["list"],
        &["stats"],
        &["gc"],
        &["migrate"],
        &["demo"],
    ] {
        let folder = Folder::new();
        let mut command = bq_guard(arguments);
        command
            .env("BQ_GUARD_STORE", &url)
            .current_dir(folder.path());
        let ended = end_with(&mut command, lines(["a"]));
        let name = arguments[0];
        assert!(!folder.file("ran").exists());
        assert!(!ended.err.contains("s3cret-word"), "{name}: {}", ended.err);
        // A store may find out at once, or when it is asked.
        if name != "migrate" && name != "gc" {
            assert_eq!(ended.status, 3, "{name}: {}", ended.err);
            assert!(
                ended.err.contains("store unavailable"),
                "{name}: {}",
                ended.err
            );
        }
    }
}

#[test]
fn a_store_that_goes_down_loses_nothing() {
    let Some(mut redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let child = run(&folder, &redis.url(), 6, WAITS_AT_THREE)
        .spawn()
        .unwrap();
    until("three run", || folder.ledger().len() == 3);
    redis.kill();
    folder.write("go", "");
    let ended = finish(child);
    assert_eq!(ended.status, 3, "{}", ended.err);
    let reports = ended.objects();
    // Its effect has happened; only the mark is missing.
    assert_eq!(reports[2]["outcome"], "succeeded");
    assert_eq!(reports[2]["marked"], false);
    assert!(
        reports[2]["error"]
            .as_str()
            .unwrap()
            .starts_with("unavailable: "),
        "{}",
        reports[2]
    );
    assert_eq!(reports[3]["n"], 4);
    assert_eq!(reports[3]["decision"], "error");
    assert!(
        reports[3]["error"]
            .as_str()
            .unwrap()
            .starts_with("unavailable: "),
        "{}",
        reports[3]
    );
    let summary = ended.summary();
    assert_eq!(summary["unmarked"], 1);
    assert_eq!(summary["not_handled"], 3);
    assert_eq!(summary["first_not_handled"], 4);

    redis.restart();
    let again = end(&mut run(&folder, &redis.url(), 6, WAITS_AT_THREE));
    assert_eq!(again.status, 0, "{}", again.err);
    let mut ledger = sorted(folder.ledger());
    ledger.dedup();
    assert_eq!(ledger, sorted(parcels(6)));
}

#[test]
fn a_missing_mark_is_no_success() {
    let Some(mut redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let child = run(&folder, &redis.url(), 3, WAITS_AT_THREE)
        .spawn()
        .unwrap();
    until("the last one runs", || folder.ledger().len() == 3);
    redis.kill();
    folder.write("go", "");
    let ended = finish(child);
    assert_eq!(ended.status, 1, "{}", ended.err);
    assert_eq!(ended.summary()["unmarked"], 1);
}

#[test]
fn a_store_that_hangs_stops_the_run() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let child = run(&folder, &redis.url(), 5, WAITS_AT_THREE)
        .spawn()
        .unwrap();
    until("three run", || folder.ledger().len() == 3);
    redis.pause();
    folder.write("go", "");
    let ended = finish(child);
    redis.resume();
    assert_eq!(ended.status, 3, "{}", ended.err);
    assert_eq!(ended.summary()["first_not_handled"], 4);
}

#[test]
fn something_of_another_type_under_a_key_is_named() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let _: () = redis.command(&["HSET", "bq:idemp:b", "some", "thing"]);
    let mut command = bq_guard(["run", "--json", "--store", &redis.url()]);
    let ended = end_with(&mut command, lines(["a", "b", "c"]));
    assert_eq!(ended.status, 3);
    let (reports, summary) = ended.reports_and_summary();
    let error = reports[1]["error"].as_str().unwrap();
    assert!(
        error.starts_with("rejected: ") && error.contains("bq:idemp:b"),
        "{error}"
    );
    assert_eq!(summary["first_not_handled"], 2);
    assert_eq!(redis.command::<String>(&["TYPE", "bq:idemp:b"]), "hash");
}

#[test]
fn killed_in_the_middle_and_started_again_nothing_is_lost() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let script = r#"echo "$BQ_MESSAGE_ID" >> ledger"#;
    for kills in 1..=4 {
        let mut child = run(&folder, &redis.url(), 150, script).spawn().unwrap();
        until("a few more are done", || {
            folder.ledger().len() >= kills * 25
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ended = end(&mut run(&folder, &redis.url(), 150, script));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let ledger = sorted(folder.ledger());
    let mut unique = ledger.clone();
    unique.dedup();
    assert_eq!(unique, sorted(parcels(150)));
    // One line was in hand at each kill.
    assert!(
        ledger.len() - unique.len() <= 4,
        "{} effects too many",
        ledger.len() - unique.len()
    );
}
