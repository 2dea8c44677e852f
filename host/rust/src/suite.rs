//! The suite that every store passes, to be run against one's own.
//!
//! Each function takes a way of making a store with given settings and
//! panics, naming the rule, at the first one that is broken (contract,
//! sections 2 to 4 and 8). Ids are made up anew in each run, so that all of
//! them may share one place. A run takes some seconds, for it waits for leases
//! and marks to lapse.
//!
//! ```
//! use babelqueue_guard::store::memory::{MemorySettings, MemoryStore};
//! use babelqueue_guard::suite;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # if std::env::var_os("NEVER").is_some() {
//! suite::check_store(async |settings| {
//!     let mut memory = MemorySettings::default();
//!     memory.retention = settings.retention;
//!     MemoryStore::new(memory).unwrap()
//! })
//! .await;
//! # }
//! # }
//! ```

mod claims;
mod seen;
mod steps;

pub use claims::check_claims;
pub use seen::check_store;
pub use steps::check_steps;

use crate::error::StoreError;
use crate::settings::{LeaseLength, Retention};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a store under test has to be made with.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SuiteSettings {
    /// How long it is to keep marks and steps.
    pub retention: Retention,
    /// How long its leases are to last.
    pub lease: LeaseLength,
}

/// How many calls race for one id.
const RACERS: usize = 16;

/// The longest usable id, in bytes (contract, section 1).
const MAX_ID: usize = 2_048;

/// Long enough for a few calls to a store on a busy machine.
const SHORT: Duration = Duration::from_millis(1_500);

impl SuiteSettings {
    fn short_retention() -> Self {
        Self {
            retention: Retention::of(SHORT).unwrap_or_default(),
            ..Self::default()
        }
    }

    fn forever() -> Self {
        Self {
            retention: Retention::Forever,
            ..Self::default()
        }
    }

    fn short_lease() -> Self {
        Self {
            lease: LeaseLength::of(SHORT).unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// An id that no other run has used.
fn fresh(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    format!("suite-{:x}-{now:x}-{count}-{name}", std::process::id())
}

/// Ids that a careless store would confuse with one another, or choke on.
fn odd_ids() -> Vec<String> {
    let base = fresh("odd");
    let mut ids: Vec<String> = [
        "",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "A",
        "a",
        "Ä",
        "A\u{308}",
        "*",
        "?",
        "[a]",
        "%",
        "_",
        "%_",
        "'",
        "\"",
        "\\",
        "\\0",
        "$1",
        "{}",
        ":",
        "::",
        "/",
        ";--",
        "\u{1}",
        "\u{7f}",
        "\u{80}",
        "\u{feff}",
        "\u{fffd}",
        "\u{202e}",
        "ß",
        "ss",
        "ı",
        "i",
        "😀",
        "𝄞",
        "\u{10ffff}",
    ]
    .iter()
    .map(|end| format!("{base}{end}"))
    .collect();
    // As long as an id may be, and alike but for the last byte.
    for end in ["x", "y"] {
        let fill = MAX_ID - base.len() - 1;
        ids.push(format!("{base}{}{end}", "-".repeat(fill)));
    }
    ids
}

/// Ends the run with a message where the store failed.
trait Must<T> {
    fn must(self, what: &str) -> T;
}

impl<T> Must<T> for Result<T, StoreError> {
    #[track_caller]
    #[allow(clippy::panic, reason = "the suite's verdict")]
    fn must(self, what: &str) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("{what} failed: {error}"),
        }
    }
}
