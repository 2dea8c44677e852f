//! The README's session gives what the README shows.

use crate::program::{Folder, bq_guard, end};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const README: &str = include_str!("../../README.md");

/// Printed before each command's output.
const NEXT: &str = "==== next ====";

#[test]
fn the_session_is_as_shown() {
    let (_, session) = README.split_once("```console\n").unwrap();
    let (session, _) = session.split_once("```").unwrap();
    let mut script = String::from("exec 2>&1\n");
    let mut shown = String::new();
    for line in session.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            write!(script, "echo '{NEXT}'\n{command}\n").unwrap();
            writeln!(shown, "{NEXT}").unwrap();
        } else {
            writeln!(shown, "{line}").unwrap();
        }
    }
    let folder = Folder::new();
    let orders: String = ["order-1", "order-2", "order-1"]
        .iter()
        .map(|id| {
            let number = &id[6..];
            format!(
                r#"{{"job":"urn:babel:orders:created","data":{{"order_id":{number}}},"meta":{{"id":"{id}"}}}}"#
            ) + "\n"
        })
        .collect();
    folder.write("orders.ndjson", orders);
    let program = Path::new(env!("CARGO_BIN_EXE_bq-guard")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", program.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    assert_eq!(end(&mut shell).out(), shown);
}

#[test]
fn every_command_is_in_the_table() {
    let help = end(&mut bq_guard(["--help"]));
    let (_, commands) = help.out().split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    for line in commands.lines() {
        let command = line.split_whitespace().next().unwrap();
        assert!(
            command == "help" || README.contains(&format!("`{command}`")),
            "{command}"
        );
    }
}
