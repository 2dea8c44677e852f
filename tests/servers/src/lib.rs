//! Real servers for tests, each a child process on a free port with a folder
//! of its own, stopped when it is dropped or when the test program ends.
//!
//! ```no_run
//! let Some(redis) = test_servers::redis() else { return };
//! println!("{}", redis.url());
//! redis.pause(); // as a machine that hangs
//! redis.resume();
//! ```
//!
//! A server that is not installed gives `None`, after saying so on standard
//! error; with `CI=true` in the environment it panics instead, so that nothing
//! is skipped there unseen. `BQ_GUARD_REDIS_SERVER` and `BQ_GUARD_VALKEY_SERVER`
//! name other binaries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "only tests use this"
)]

pub mod account;
pub mod certificates;
pub mod pgbouncer;
pub mod postgres;
pub mod process;
pub mod redis;
pub mod redis_cluster;
pub mod redis_sentinel;

pub use crate::certificates::Certificates;
pub use crate::pgbouncer::Pgbouncer;
pub use crate::postgres::{Postgres, postgres};
pub use crate::redis::{Redis, redis, valkey};
pub use crate::redis_cluster::RedisCluster;
pub use crate::redis_sentinel::RedisSentinel;

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A program from the environment variable, or the first of these names that
/// is on the path. `None` says that the test is to be skipped.
///
/// # Panics
///
/// With `CI=true`, if there is none.
pub fn program(variable: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(chosen) = std::env::var_os(variable).filter(|name| !name.is_empty()) {
        return find(&chosen).or_else(|| missing(&format!("{variable} names no program")));
    }
    names
        .iter()
        .find_map(|name| find(&OsString::from(name)))
        .or_else(|| missing(&format!("{} is not installed", names[0])))
}

fn find(name: &OsString) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Joining an absolute name gives that name.
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// What a test does about a server that is not there: `None` after saying why.
///
/// # Panics
///
/// With `CI=true`.
#[must_use]
pub fn missing<T>(why: &str) -> Option<T> {
    assert!(
        !std::env::var("CI").is_ok_and(|ci| ci == "true"),
        "{why}, and nothing may be skipped here"
    );
    eprintln!("skipped: {why}");
    None
}

/// A port that nobody listens on, below those that the system gives to
/// outgoing connections, so that a server can come back on it. It is this
/// program's until it ends.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static KEPT: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("babelqueue-guard-ports-{user}"));
    fs::create_dir_all(&folder).expect("a folder for locks");
    // Test programs that run side by side begin at different places.
    let start = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.subsec_micros());
    let (port, lock) = (0..10_000)
        // A cluster's node listens 10,000 higher too.
        .map(|_| start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000 + 10_000)
        .filter_map(|port| u16::try_from(port).ok())
        .find_map(|port| {
            let lock = File::create(folder.join(port.to_string())).ok()?;
            lock.try_lock().ok()?;
            let listens = TcpListener::bind(("127.0.0.1", port)).is_err();
            (!listens).then_some((port, lock))
        })
        .expect("a free port");
    KEPT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(lock);
    port
}
