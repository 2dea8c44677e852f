//! The built program, as a user runs it: with real servers, signals and
//! closed pipes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "tests"
)]

mod claims;
mod component;
mod conformance;
mod demo;
mod exec;
mod faults;
mod filter;
mod help;
mod id;
mod lines;
mod operator;
mod program;
mod readme;
mod signals;
mod stores;
mod terminal;
