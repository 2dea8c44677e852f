//! `run --exec`: a command for each line.

use crate::program::{Folder, bq_guard, end, end_with, envelope, lines};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_command_gets_the_line_and_its_id() {
    let input = format!("{}\r\n{}", envelope("a b\n"), r#"{"meta":{}}"#);
    let script = r#"printf '<%s>' "${BQ_MESSAGE_ID-none}"; cat"#;
    let mut command = bq_guard(["run", "--quiet", "--exec", "sh", "-c", script]);
    let ended = end_with(command.env("BQ_MESSAGE_ID", "of somebody else"), input);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let expected = format!("<a b\n>{}\r\n<none>{}", envelope("a b\n"), r#"{"meta":{}}"#);
    assert_eq!(ended.out(), expected);
}

#[test]
fn twice_on_memory_runs_twice_and_on_redis_once() {
    let folder = Folder::new();
    let input = folder.write("input", lines(["a", "b", "c"]));
    let run = |store: &str| {
        let mut command = bq_guard(["run", input.to_str().unwrap(), "--store", store]);
        end(command.args(["--exec", "cat"])).out
    };
    for _ in 0..2 {
        assert_eq!(run("memory:"), lines(["a", "b", "c"]).into_bytes());
    }
    let Some(redis) = test_servers::redis() else {
        return;
    };
    assert_eq!(run(&redis.url()), lines(["a", "b", "c"]).into_bytes());
    assert!(run(&redis.url()).is_empty());
}

#[test]
fn a_failure_is_not_marked_and_is_retried() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let script = r#"echo "$BQ_MESSAGE_ID" >> ledger; [ "$BQ_MESSAGE_ID" != b ] || [ -e mended ]"#;
    let run = || {
        let store = redis.url();
        let mut command = bq_guard(["run", "--json", "--store", &store, "--exec", "sh", "-c"]);
        command.arg(script).current_dir(folder.path());
        end_with(&mut command, lines(["a", "b", "c"]))
    };
    let first = run();
    assert_eq!(first.status, 1);
    assert_eq!(
        first.objects()[1],
        json!({"n": 2, "id": "b", "decision": "run", "reason": null, "outcome": "failed",
               "marked": false, "error": "command: exit status 1"})
    );
    assert_eq!(folder.ledger(), ["a", "b", "c"]);
    folder.write("mended", "");
    assert_eq!(run().status, 0);
    assert_eq!(folder.ledger(), ["a", "b", "c", "b"]);
}

#[test]
fn a_command_that_is_killed_has_failed() {
    let mut command = bq_guard(["run", "--json", "--exec", "sh", "-c", "kill -9 $$"]);
    let ended = end_with(&mut command, lines(["a", "b"]));
    assert_eq!(ended.status, 1);
    for report in ended.objects() {
        assert_eq!(report["outcome"], "failed");
        assert_eq!(report["error"], "command: killed by signal 9");
    }
    assert_eq!(
        ended.summary()["failed"],
        2,
        "the next one is tried all the same"
    );
}

#[test]
fn a_command_that_cannot_be_started_stops_the_run() {
    let folder = Folder::new();
    let plain = folder.write("plain", "#!/bin/sh\n");
    let nonsense = folder.write("nonsense", "\x7fELF but not really");
    let dangling = folder.write("dangling", "#!/no/such/interpreter\n");
    for file in [&nonsense, &dangling] {
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for (command, why) in [
        ("no-such-command", "no such command"),
        (plain.to_str().unwrap(), "not executable"),
        (nonsense.to_str().unwrap(), "it is no program"),
        (dangling.to_str().unwrap(), "first line"),
        ("", "no such command"),
    ] {
        let ended = end_with(
            &mut bq_guard(["run", "--exec", command]),
            lines(["a", "b", "c"]),
        );
        assert_eq!(ended.status, 2, "{command}: {}", ended.err);
        assert!(ended.err.contains(why), "{command}: {}", ended.err);
        assert!(
            ended
                .err
                .contains("not handled: 3 lines, the first is line 1"),
            "{}",
            ended.err
        );
    }
    // With nothing to run, nothing is missing.
    let ended = end_with(&mut bq_guard(["run", "--exec", "no-such-command"]), "\n");
    assert_eq!(ended.status, 0);
}

#[test]
fn a_command_need_not_read_its_input() {
    let big = format!(
        "{{\"meta\":{{\"id\":\"a\"}},\"data\":\"{}\"}}\n",
        "x".repeat(4 << 20)
    );
    for script in ["true", "exec <&-; true", "head -c 1 > /dev/null"] {
        let mut command = bq_guard(["run", "--json", "--exec", "sh", "-c", script]);
        let ended = end_with(&mut command, big.clone());
        assert_eq!(ended.status, 0, "{script}: {}", ended.err);
        assert_eq!(ended.objects()[0]["marked"], true);
    }
}

#[test]
fn what_a_command_leaves_behind_keeps_nobody_waiting() {
    // Something it started holds its input open and reads none of it.
    let folder = Folder::new();
    let big = format!(
        "{{\"meta\":{{\"id\":\"a\"}},\"data\":\"{}\"}}\n",
        "x".repeat(4 << 20)
    );
    let script = "sleep 600 <&0 >/dev/null 2>&1 & echo $! > left";
    let mut command = bq_guard(["run", "--quiet", "--exec", "sh", "-c", script]);
    let ended = end_with(command.current_dir(folder.path()), big);
    let left = std::fs::read_to_string(folder.file("left")).unwrap();
    std::process::Command::new("kill")
        .arg(left.trim())
        .status()
        .unwrap();
    assert_eq!(ended.status, 0, "{}", ended.err);
}

#[test]
fn much_in_and_much_out_at_once() {
    let big = format!(
        "{{\"meta\":{{\"id\":\"a\"}},\"data\":\"{}\"}}\n",
        "x".repeat(8 << 20)
    );
    let ended = end_with(
        &mut bq_guard(["run", "--quiet", "--exec", "cat"]),
        big.clone(),
    );
    assert_eq!(ended.status, 0);
    assert_eq!(ended.out, big.into_bytes());
}

#[test]
fn with_json_standard_output_is_for_reports() {
    let mut command = bq_guard([
        "run",
        "--json",
        "--exec",
        "sh",
        "-c",
        "echo out; echo err >&2",
    ]);
    let ended = end_with(&mut command, lines(["a"]));
    assert_eq!(ended.objects().len(), 1);
    assert_eq!(
        ended
            .err
            .lines()
            .filter(|line| ["out", "err"].contains(line))
            .count(),
        2
    );
    assert_eq!(ended.summary()["succeeded"], 1);
}

#[test]
fn reports_that_nobody_reads_stop_it_after_the_mark() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = bq_guard(["run", "--json", "--store", &redis.url(), "--exec", "true"]);
    let ended = end_with(command.stdout(writer), lines(["a", "b", "c"]));
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(redis.command::<Vec<String>>(&["KEYS", "*"]), ["bq:idemp:a"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let missing = folder.file("missing");
    let path = folder.path().to_owned();
    for (file, why) in [(missing, "No such file"), (path, "is a folder")] {
        let ended = end(&mut bq_guard([std::path::Path::new("run"), &file]));
        assert_eq!(ended.status, 2);
        assert!(ended.err.contains(why) && ended.err.contains(file.to_str().unwrap()));
    }
}
