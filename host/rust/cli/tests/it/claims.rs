//! `run --claim`: copies in flight at the same time.

use crate::program::{Folder, bq_guard, end, finish, lines, parcels, postgres, sorted, until};
use std::path::Path;
use std::process::Command;

/// Writes its id into the ledger after a while, as a slow handler does.
const SLOW: &str = r#"sleep 0.05; echo "$BQ_MESSAGE_ID" >> ledger"#;

/// Each message four times, in an order that puts copies beside each other and
/// far apart.
fn four_times(ids: &[String]) -> String {
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let twice: Vec<&str> = ids.iter().flat_map(|id| [*id, *id]).collect();
    let once = ids.iter().copied();
    lines(twice.into_iter().chain(once.clone()).chain(once.rev()))
}

fn run(store: &str, jobs: &str, input: &Path, folder: &Folder) -> Command {
    let mut command = bq_guard(["run", "--json", "--claim", "--store", store, "--jobs", jobs]);
    command
        .arg(input)
        .args(["--exec", "sh", "-c", SLOW])
        .current_dir(folder.path());
    command
}

fn each_has_one_effect(store: &str) {
    let folder = Folder::new();
    let ids = parcels(40);
    let input = folder.write("input", four_times(&ids));
    let ended = end(&mut run(store, "8", &input, &folder));
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(sorted(folder.ledger()), sorted(ids.clone()));
    let summary = ended.summary();
    assert_eq!(summary["succeeded"], 40);
    assert_eq!(summary["skipped"], 120);
    let objects = ended.objects();
    let parks = objects.iter().filter(|it| it["decision"] == "park");
    assert!(parks.count() > 0, "copies beside each other met");
}

fn two_processes_share_the_work(store: &str) {
    let folder = Folder::new();
    let ids = parcels(30);
    let input = folder.write("input", four_times(&ids));
    let running: Vec<_> = (0..2)
        .map(|_| run(store, "4", &input, &folder).spawn().unwrap())
        .collect();
    for ended in running.into_iter().map(finish) {
        assert_eq!(ended.status, 0, "{}", ended.err);
        let summary = ended.summary();
        let handled = summary["succeeded"].as_u64().unwrap() + summary["skipped"].as_u64().unwrap();
        assert_eq!(
            handled, 120,
            "each of its lines, parked ones too: {summary}"
        );
    }
    assert_eq!(sorted(folder.ledger()), sorted(ids));
}

/// Kills it while it holds claims; what it was doing runs again once they have
/// lapsed.
fn killed_and_started_again_nothing_is_lost(store: &str) {
    let folder = Folder::new();
    let ids = parcels(60);
    let input = folder.write("input", four_times(&ids));
    let command = || {
        let mut command = bq_guard(["run", "--json", "--claim", "--lease", "1s", "--jobs", "4"]);
        command.args(["--store", store]).arg(&input);
        command
            .args(["--exec", "sh", "-c", SLOW])
            .current_dir(folder.path());
        command
    };
    for round in 1..=2 {
        let mut child = command().spawn().unwrap();
        until("a few more are done", || {
            folder.ledger().len() >= round * 15
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let ended = end(&mut command());
    assert_eq!(ended.status, 0, "{}", ended.err);
    let mut ledger = sorted(folder.ledger());
    let effects = ledger.len();
    ledger.dedup();
    assert_eq!(ledger, sorted(ids));
    // At most those that were in hand ran twice.
    assert!(effects - ledger.len() <= 2 * 4, "{effects}");
}

#[test]
fn in_memory_eight_jobs_over_four_copies() {
    each_has_one_effect("memory:");
}

#[test]
fn on_redis() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    each_has_one_effect(&redis.url());
    let _: () = redis.command(&["FLUSHALL"]);
    two_processes_share_the_work(&redis.url());
    let _: () = redis.command(&["FLUSHALL"]);
    killed_and_started_again_nothing_is_lost(&redis.url());
}

#[test]
fn on_postgres() {
    for check in [
        each_has_one_effect,
        two_processes_share_the_work,
        killed_and_started_again_nothing_is_lost,
    ] {
        let Some(store) = postgres() else {
            return;
        };
        assert_eq!(end(&mut bq_guard(["migrate", "--store", &store])).status, 0);
        check(&store);
    }
}

#[test]
fn on_sqlite() {
    for check in [
        each_has_one_effect,
        two_processes_share_the_work,
        killed_and_started_again_nothing_is_lost,
    ] {
        let folder = Folder::new();
        check(&format!("sqlite:{}", folder.file("marks.db").display()));
    }
}

#[test]
fn a_parked_line_runs_when_the_lease_of_another_has_ended() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let input = folder.write("input", lines(["parcel-1", "parcel-2"]));
    // A worker that has died.
    let _: () = redis.command(&["SET", "bq:lease:parcel-1", "of-the-dead", "PX", "1500"]);
    let ended = end(&mut run(&redis.url(), "1", &input, &folder));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let decisions: Vec<_> = ended
        .objects()
        .iter()
        .map(|report| format!("{} {}", report["n"], report["decision"].as_str().unwrap()))
        .collect();
    // Told as parked once, however often it was tried; nobody waits for it.
    assert_eq!(decisions, ["1 park", "2 run", "1 run"]);
    assert_eq!(folder.ledger(), ["parcel-2", "parcel-1"]);
}

#[test]
fn a_lease_is_kept_alive_while_the_command_runs() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let input = folder.write("input", lines(["parcel-1", "parcel-1"]));
    let store = redis.url();
    let mut command = bq_guard([
        "run", "--claim", "--lease", "300ms", "--jobs", "2", "--store",
    ]);
    command.arg(store).arg(input).current_dir(folder.path());
    command.args(["--exec", "sh", "-c", "sleep 2; echo done >> ledger"]);
    let ended = end(&mut command);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(folder.ledger(), ["done"]);
    assert!(!ended.err.contains("lease is lost"), "{}", ended.err);
}

#[test]
fn a_failure_gives_the_claim_back() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let input = folder.write("input", lines(["parcel-1"]));
    let store = redis.url();
    let mut command = bq_guard(["run", "--claim", "--store", &store]);
    let ended = end(command.arg(input).args(["--exec", "false"]));
    assert_eq!(ended.status, 1);
    assert_eq!(
        redis.command::<usize>(&["DBSIZE"]),
        0,
        "neither mark nor lease"
    );
}

#[test]
fn a_lost_lease_is_told_and_the_effect_is_marked() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let input = folder.write("input", lines(["parcel-1"]));
    let store = redis.url();
    let mut command = bq_guard([
        "run", "--json", "--claim", "--lease", "300ms", "--store", &store,
    ]);
    command.arg(input).current_dir(folder.path());
    command.args([
        "--exec",
        "sh",
        "-c",
        "touch started; while [ ! -e go ]; do sleep 0.02; done",
    ]);
    let child = command.spawn().unwrap();
    until("it runs", || folder.file("started").exists());
    let _: () = redis.command(&["SET", "bq:lease:parcel-1", "of-another", "PX", "60000"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    folder.write("go", "");
    let ended = finish(child);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("lease is lost"), "{}", ended.err);
    let report = &ended.objects()[0];
    assert_eq!(report["marked"], true);
    assert!(
        report["error"].as_str().unwrap().starts_with("late: "),
        "{report}"
    );
    assert_eq!(
        redis.command::<String>(&["GET", "bq:lease:parcel-1"]),
        "of-another"
    );
}
