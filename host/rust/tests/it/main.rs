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
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod child;
mod claiming;
mod component;
mod hostile;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod inventory;
#[cfg(feature = "tower")]
mod layer;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stores;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod transaction;
mod watch;
