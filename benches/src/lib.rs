//! What the benchmarks share: the bodies, one store for all contenders, and
//! the baseline that reads the id with serde_json.

use async_trait::async_trait;
use babelqueue_guard::StoreError;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub mod baseline;

/// An id as producers make them.
pub const ID: &str = "f1e2d3c4-b5a6-4789-90ab-cdef01234567";

/// A body, and what it is called in a table.
#[derive(Debug)]
pub struct Body {
    /// Its name.
    pub name: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// An envelope with an order of so many lines.
fn order(lines: usize, before: &str, between: &str) -> String {
    let items: Vec<String> = (0..lines)
        .map(|line| {
            format!(
                "{before}{{{between}\"sku\":{between}\"A-{line:06}\",{between}\"quantity\":{between}{},\
                 {between}\"price_cents\":{between}{},{between}\"gift\":{between}false{before}}}",
                line % 7 + 1,
                line * 37 % 10_000
            )
        })
        .collect();
    envelope(&format!("[{}]", items.join(",")))
}

/// An envelope with this value as its data.
fn envelope(data: &str) -> String {
    format!(
        r#"{{"job":"urn:babel:orders:created","trace_id":"7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b","data":{data},"meta":{{"id":"{ID}","queue":"orders","lang":"php","schema_version":1,"created_at":1748772930123}},"attempts":0}}"#
    )
}

fn order_of(size: usize) -> String {
    let line = order(2, "", "").len() - order(1, "", "").len();
    order(size.saturating_sub(order(0, "", "").len()) / line, "", "")
}

/// An envelope of some 250 bytes with this id.
#[must_use]
pub fn envelope_of(id: &str) -> Vec<u8> {
    envelope(r#"{"order":1042}"#).replace(ID, id).into_bytes()
}

/// Whether this run measures, as under `cargo bench`. Any other one, as under
/// `cargo test --bench`, shows that the benchmark works, by small counts.
#[must_use]
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// The time in the middle, or zero for none.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The bodies of the table in the README.
#[must_use]
pub fn bodies() -> Vec<Body> {
    let text = "All work and no play makes for a long string. ".repeat(5_700);
    [
        ("250 B", envelope(r#"{"order":1042}"#)),
        ("1 KB", order_of(1_000)),
        ("10 KB", order_of(10_000)),
        ("100 KB", order_of(100_000)),
        ("256 KB", order_of(262_144)),
        ("256 KB, one text", envelope(&format!("\"{text}\""))),
        ("indented", order(2_900, "\n      ", "\n          ")),
    ]
    .into_iter()
    .map(|(name, text)| Body {
        name,
        bytes: text.into_bytes(),
    })
    .collect()
}

/// The store that all contenders ask: a set behind a lock.
#[derive(Debug, Default)]
pub struct SeenSet(Mutex<HashSet<String>>);

impl SeenSet {
    /// Whether the id is in the set.
    pub fn contains(&self, id: &str) -> bool {
        self.set().contains(id)
    }

    fn set(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl babelqueue_guard_logic::Store for SeenSet {
    fn seen(&self, id: &str) -> Result<bool, babelqueue_guard_logic::types::StoreError> {
        Ok(self.contains(id))
    }

    fn remember(&self, id: &str) -> Result<(), babelqueue_guard_logic::types::StoreError> {
        self.set().insert(id.to_owned());
        Ok(())
    }

    fn forget(&self, id: &str) -> Result<(), babelqueue_guard_logic::types::StoreError> {
        self.set().remove(id);
        Ok(())
    }
}

#[async_trait]
impl babelqueue_guard::Store for SeenSet {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.contains(id))
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.set().insert(id.to_owned());
        Ok(())
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.set().remove(id);
        Ok(())
    }
}
