//! A small rig of each mode over each store. Larger ones are run by hand:
//! `cargo run -p fault-rig -- run claim redis --messages 10000`.

#![allow(clippy::panic, clippy::expect_used, reason = "tests")]

use std::process::Command;

/// A rig that finds a broken promise ends with 1, after saying so.
fn holds(mode: &str, store: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_fault-rig"))
        .args(["run", mode, store])
        .output()
        .expect("the rig");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("{out}{err}");
    assert!(output.status.success(), "{mode} {store}: {out}{err}");
    assert!(
        out.starts_with("rig: ") || err.contains("skipped: "),
        "{mode} {store} says nothing"
    );
}

#[test]
fn seen_set_on_redis() {
    holds("seen", "redis");
}

#[test]
fn seen_set_on_postgres() {
    holds("seen", "postgres");
}

#[test]
fn seen_set_on_sqlite() {
    holds("seen", "sqlite");
}

#[test]
fn claims_on_redis() {
    holds("claim", "redis");
}

#[test]
fn claims_on_postgres() {
    holds("claim", "postgres");
}

#[test]
fn claims_on_sqlite() {
    holds("claim", "sqlite");
}

#[test]
fn transactions_on_postgres() {
    holds("transaction", "postgres");
}

#[test]
fn transactions_on_sqlite() {
    holds("transaction", "sqlite");
}
