//! SIGINT, SIGTERM and what a terminal does with Ctrl-C.

use crate::program::{Folder, bq_guard, finish, lines, until};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const SLOW: &str = "touch started; sleep 1; echo \"$BQ_MESSAGE_ID\" >> ledger";

fn run(folder: &Folder, script: &str) -> Command {
    let input = folder.write("input", lines(["a", "b", "c"]));
    let mut command = bq_guard(["run", "--json"]);
    command.arg(input).args(["--exec", "sh", "-c", script]);
    // A group of its own, as a shell makes for each job.
    command.current_dir(folder.path()).process_group(0);
    command
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn the_line_in_hand_is_finished_and_marked() {
    for (signal, status, name) in [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM")] {
        let folder = Folder::new();
        let child = run(&folder, SLOW).spawn().unwrap();
        until("it runs", || folder.file("started").exists());
        // To the whole group, as a terminal does: the command must not get it.
        kill_process_group(pid(&child), signal).unwrap();
        let ended = finish(child);
        assert_eq!(ended.status, status, "{}", ended.err);
        assert_eq!(folder.ledger(), ["a"]);
        let reports = ended.objects();
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0]["outcome"], "succeeded");
        assert_eq!(reports[0]["marked"], true);
        let summary = ended.summary();
        assert_eq!(summary["stopped"], name);
        assert_eq!(summary["not_handled"], 2);
        assert_eq!(summary["first_not_handled"], 2);
        assert_eq!(summary["input_left"], false);
    }
}

#[test]
fn a_second_signal_is_passed_on_to_the_command() {
    let folder = Folder::new();
    let child = run(&folder, "touch started; exec sleep 600")
        .spawn()
        .unwrap();
    until("it runs", || folder.file("started").exists());
    kill_process(pid(&child), Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    kill_process(pid(&child), Signal::TERM).unwrap();
    let ended = finish(child);
    assert_eq!(ended.status, 130, "{}", ended.err);
    let reports = ended.objects();
    assert_eq!(reports[0]["error"], "command: killed by signal 15");
    assert_eq!(ended.summary()["not_handled"], 2);
}

#[test]
fn all_jobs_finish() {
    let folder = Folder::new();
    let script = r#"touch started."$BQ_MESSAGE_ID"; sleep 1; echo "$BQ_MESSAGE_ID" >> ledger"#;
    let input = folder.write("input", lines(["a", "b", "c", "d", "e"]));
    let mut command = bq_guard(["run", "--json", "--jobs", "3"]);
    command.arg(input).args(["--exec", "sh", "-c", script]);
    let child = command.current_dir(folder.path()).spawn().unwrap();
    let started = |id: &str| folder.file(&format!("started.{id}")).exists();
    until("three run", || ["a", "b", "c"].into_iter().all(started));
    kill_process(pid(&child), Signal::TERM).unwrap();
    let ended = finish(child);
    assert_eq!(ended.status, 143);
    assert_eq!(crate::program::sorted(folder.ledger()), ["a", "b", "c"]);
    assert_eq!(ended.summary()["succeeded"], 3);
    assert_eq!(ended.summary()["first_not_handled"], 4);
}

#[test]
fn an_input_that_goes_on_is_left() {
    let mut child = bq_guard(["run", "--json"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(["a"]).as_bytes()).unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut passed_on = String::new();
    std::io::BufRead::read_line(&mut out, &mut passed_on).unwrap();
    assert_eq!(passed_on, lines(["a"]));
    kill_process(pid(&child), Signal::TERM).unwrap();
    // The input is still open.
    let ended = finish(child);
    assert_eq!(ended.status, 143, "{}", ended.err);
    let summary = ended.summary();
    assert_eq!(summary["succeeded"], 1);
    assert_eq!(summary["input_left"], true);
    drop(stdin);
}

#[test]
fn a_reader_that_stalls_can_be_left_by_a_second_signal() {
    let folder = Folder::new();
    let big = format!(
        "{{\"meta\":{{\"id\":\"a\"}},\"data\":\"{}\"}}\n",
        "x".repeat(1 << 20)
    );
    let input = folder.write("input", big);
    let mut child = bq_guard(["run", "--json"]).arg(input).spawn().unwrap();
    let mut unread = child.stdout.take().unwrap();
    // More than a pipe holds: it waits for its reader.
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut unread, &mut first).unwrap();
    for _ in 0..2 {
        kill_process(pid(&child), Signal::TERM).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let ended = finish(child);
    assert_eq!(ended.status, 143, "{}", ended.err);
    assert_eq!(ended.summary()["first_not_handled"], 1);
    drop(unread);
}

#[test]
fn parked_lines_are_told_as_not_handled() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let folder = Folder::new();
    let input = folder.write("input", lines(["a", "b"]));
    let _: () = redis.command(&["SET", "bq:lease:a", "of-another", "PX", "600000"]);
    let mut command = bq_guard(["run", "--json", "--claim", "--store", &redis.url()]);
    command.arg(input).current_dir(folder.path());
    command.args(["--exec", "sh", "-c", "echo \"$BQ_MESSAGE_ID\" >> ledger"]);
    let child = command.spawn().unwrap();
    until("b is done", || folder.ledger() == ["b"]);
    kill_process(pid(&child), Signal::INT).unwrap();
    let ended = finish(child);
    assert_eq!(ended.status, 130, "{}", ended.err);
    assert_eq!(ended.summary()["not_handled"], 1);
    assert_eq!(ended.summary()["first_not_handled"], 1);
}

#[test]
fn nobody_need_read_the_reports_for_it_to_end() {
    let folder = Folder::new();
    // More reports than a pipe holds, in few lines.
    let ids: Vec<_> = (0..200).map(|n| format!("{n:02000}")).collect();
    let input = folder.write("input", lines(ids.iter().map(String::as_str)));
    let mut command = bq_guard(["run", "--json"]);
    command
        .arg(input)
        .args(["--exec", "sh", "-c", "echo >> ledger"]);
    let mut child = command.current_dir(folder.path()).spawn().unwrap();
    let unread = child.stdout.take().unwrap();
    let mut before = 0;
    until("it waits for its reader", || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = folder.ledger().len();
        now > 5 && std::mem::replace(&mut before, now) == now
    });
    for _ in 0..2 {
        kill_process(pid(&child), Signal::TERM).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(finish(child).status, 143);
    assert!(folder.ledger().len() < 200);
    drop(unread);
}
