//! `run` without a command: passes on what is not marked.

use crate::program::{Folder, bq_guard, end, end_with, envelope, finish, lines, parcels};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn what_is_passed_on_is_the_same_byte_for_byte() {
    let mut input = Vec::new();
    input.extend_from_slice(b"  {\"meta\":{\"id\":\"a\"}} \r\n");
    input.extend_from_slice(b"{\"meta\":{\"id\":\"b\"},\"data\":\"\xff\xfe\x80\"}\n");
    input.extend_from_slice(b"\xff\x00\xfe\n");
    input.extend_from_slice(b"{\"meta\":{\"id\":\"c\"}}");
    let ended = end_with(&mut bq_guard(["run"]), input.clone());
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(ended.out, input);
}

#[test]
fn a_copy_is_not_passed_on() {
    let input = lines(["a", "b", "a", "c", "b"]);
    let ended = end_with(&mut bq_guard(["run", "-"]), input);
    assert_eq!(ended.out(), lines(["a", "b", "c"]));
}

#[test]
fn across_processes_only_what_is_new_is_passed_on() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let run = |input: String| end_with(bq_guard(["run"]).env("BQ_GUARD_STORE", redis.url()), input);
    assert_eq!(run(lines(["a", "b"])).out(), lines(["a", "b"]));
    let again = run(lines(["b", "c", "a"]));
    assert_eq!(again.out(), lines(["c"]));
    assert!(
        again.err.contains("3 lines: 1 succeeded, 2 skipped"),
        "{}",
        again.err
    );
}

#[test]
fn a_closed_pipe_ends_it_cleanly_and_loses_nothing() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let ids = parcels(20_000);
    let input = folder.write("input", lines(ids.iter().map(String::as_str)));
    let run = || {
        bq_guard([
            "run",
            "--quiet",
            "--store",
            &redis.url(),
            input.to_str().unwrap(),
        ])
    };

    let mut child = run().spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    drop(out);
    let ended = finish(child);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(
        ended.err.contains("nobody reads standard output"),
        "{}",
        ended.err
    );
    assert_eq!(first, envelope("parcel-1") + "\n");

    // Marked is what was flushed, in the order of the input, and no more.
    let marked: usize = redis.command(&["DBSIZE"]);
    assert!(marked > 0 && marked < ids.len(), "{marked}");
    let rest = end(&mut run());
    assert_eq!(rest.out(), lines(ids[marked..].iter().map(String::as_str)));
}

#[test]
fn what_cannot_be_written_is_not_marked() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = bq_guard(["run", "--store", &redis.url()]);
    let ended = end_with(command.stdout(Stdio::from(full)), lines(["a", "b"]));
    assert_eq!(ended.status, 3, "{}", ended.err);
    assert!(
        ended.err.contains("standard output cannot be written"),
        "{}",
        ended.err
    );
    assert!(
        ended
            .err
            .contains("not handled: 2 lines, the first is line 1"),
        "{}",
        ended.err
    );
    assert_eq!(redis.command::<usize>(&["DBSIZE"]), 0);
}

#[test]
fn several_jobs_pass_on_whole_lines() {
    let ids = parcels(2_000);
    let input = lines(ids.iter().map(String::as_str));
    let ended = end_with(
        &mut bq_guard(["run", "--quiet", "--jobs", "8"]),
        input.clone(),
    );
    let sorted = |text: &str| crate::program::sorted(text.lines().map(str::to_owned).collect());
    assert_eq!(sorted(ended.out()), sorted(&input));
}
