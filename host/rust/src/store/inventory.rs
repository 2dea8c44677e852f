//! What a store holds, for the operator who asks.

use crate::error::StoreError;
use crate::store::{Claims, Marker};
use async_trait::async_trait;
use std::time::Duration;

/// What kind of record an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The id was processed.
    Mark,
    /// A delivery of the id is in progress.
    Lease,
}

/// One live record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The message's id.
    pub id: String,
    /// What is recorded of it.
    pub kind: Kind,
    /// How long ago it was written, where the store knows.
    pub age: Option<Duration>,
    /// How long it will last; `None` for ever.
    pub left: Option<Duration>,
}

impl Entry {
    /// A record of an id.
    #[must_use]
    pub fn new(id: String, kind: Kind, age: Option<Duration>, left: Option<Duration>) -> Self {
        Self {
            id,
            kind,
            age,
            left,
        }
    }
}

/// Some of the entries, and where the next ones begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In the store's own order. A page may be empty and yet not the last.
    pub entries: Vec<Entry>,
    /// Give this back for the next page; `None` after the last.
    pub next: Option<String>,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Live marks.
    pub marks: u64,
    /// Live leases.
    pub leases: u64,
    /// Live marks of single steps.
    pub steps: u64,
    /// Expired records that a collection would remove.
    pub expired: u64,
}

/// What the program's `stats`, `list`, `inspect`, `forget` and `gc` ask of a
/// store. Only this consumer's records are looked at.
///
/// None of it is needed to guard deliveries; a store of one's own can do
/// without.
#[async_trait]
pub trait Inventory: Claims + Marker {
    /// Counts the records. May take time proportional to their number.
    async fn stats(&self) -> Result<Stats, StoreError>;

    /// Lists marks and live leases, at most about `limit` at a time, from the
    /// beginning or from where a page said. What is written meanwhile may or
    /// may not be listed; what was there all along is listed at least once.
    async fn list(&self, from: Option<&str>, limit: u32) -> Result<Page, StoreError>;

    /// What is recorded of one id: a mark, a lease, both or neither.
    async fn inspect(&self, id: &str) -> Result<Vec<Entry>, StoreError>;

    /// Removes up to `batch` expired records and says how many it removed:
    /// fewer than `batch` mean that none is left. Never waits for a consumer
    /// or makes one wait. Stores that let records expire by themselves have
    /// nothing to do.
    async fn collect(&self, batch: u32) -> Result<u64, StoreError>;

    /// Creates what the store needs, such as its tables, and leaves what is
    /// there as it is. Says what it did, for a person.
    async fn migrate(&self) -> Result<String, StoreError>;
}
