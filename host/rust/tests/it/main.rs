//! The library's tests against real stores, in one program, since linking
//! wasmtime takes longer than running them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "tests"
)]

mod cancellation;
mod claiming;
mod component;
mod memory;
mod process;
mod stores;
