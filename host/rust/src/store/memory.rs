//! A store in this process's memory: for tests, for single workers, and as
//! the model that the other stores are compared with.

use crate::error::StoreError;
use crate::settings::{LeaseLength, Millis, Retention, SettingError};
use crate::store::inventory::{Entry, Inventory, Kind, Page, Stats};
use crate::store::{Claims, Marker, Store};
use crate::types::{ClaimOutcome, Hold, Lease};
use async_trait::async_trait;
use hashlink::LinkedHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many marks a [`MemoryStore`] holds unless told otherwise.
pub const DEFAULT_MAXIMUM: usize = 1_000_000;

/// Settings of a [`MemoryStore`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MemorySettings {
    /// How long marks and steps are kept.
    pub retention: Retention,
    /// How long a lease lasts.
    pub lease: LeaseLength,
    /// How many marks, and as many steps, are held at most. Beyond it the one
    /// remembered longest ago is forgotten, so that its message would run
    /// again.
    pub maximum: usize,
}

/// Fourteen days, sixty seconds, one million.
impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            retention: Retention::default(),
            lease: LeaseLength::default(),
            maximum: DEFAULT_MAXIMUM,
        }
    }
}

/// Marks, leases and steps in memory, on a monotonic clock. Clones share
/// them. Everything is lost with the process.
///
/// No call scans: each is a look-up, and takes away what it finds expired at
/// the old end.
#[derive(Clone)]
pub struct MemoryStore {
    records: Arc<Mutex<Records>>,
    settings: MemorySettings,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with_valid(MemorySettings::default())
    }
}

impl MemoryStore {
    /// An empty store.
    ///
    /// # Errors
    ///
    /// A maximum of zero.
    pub fn new(settings: MemorySettings) -> Result<Self, SettingError> {
        if settings.maximum == 0 {
            return Err(SettingError::new("maximum", "must be at least 1, is 0"));
        }
        Ok(Self::with_valid(settings))
    }

    fn with_valid(settings: MemorySettings) -> Self {
        Self {
            records: Arc::default(),
            settings,
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // What a panicking thread leaves behind is whole: each record is
        // written by a single insertion.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marked_until(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.settings.retention.millis()?.duration())
    }

    fn lease_length(&self) -> Duration {
        self.settings.lease.millis().duration()
    }

    fn entry(&self, id: &str, kind: Kind, left: Option<Duration>) -> Entry {
        let length = match kind {
            Kind::Mark => self.settings.retention.millis().map(Millis::duration),
            Kind::Lease => Some(self.lease_length()),
        };
        let age = length
            .zip(left)
            .map(|(length, left)| length.saturating_sub(left));
        Entry::new(id.to_owned(), kind, age, left)
    }

    fn set_mark(&self, records: &mut Records, id: &str, now: Instant) {
        records.marks.insert(id.into(), self.marked_until(now), ());
        records.marks.shrink(now, self.settings.maximum);
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.records().marks.live(id, Instant::now()).is_some())
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.set_mark(&mut self.records(), id, Instant::now());
        Ok(())
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.records().marks.remove(id);
        Ok(())
    }
}

#[async_trait]
impl Claims for MemoryStore {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        let now = Instant::now();
        let mut records = self.records();
        if records.marks.live(id, now).is_some() {
            return Ok(ClaimOutcome::Done);
        }
        if let Some((Some(until), _)) = records.leases.live(id, now) {
            return Ok(ClaimOutcome::Busy(left_ms(*until - now)));
        }
        records.claims += 1;
        let token = records.claims.to_string();
        records.leases.insert(
            id.into(),
            now.checked_add(self.lease_length()),
            token.clone(),
        );
        records.leases.shrink(now, usize::MAX);
        Ok(ClaimOutcome::Won(Lease {
            token,
            length_ms: self.settings.lease.millis().get(),
        }))
    }

    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let now = Instant::now();
        let mut records = self.records();
        if !records.owns(id, token, now) {
            return Ok(Hold::Lost);
        }
        records.leases.insert(
            id.into(),
            now.checked_add(self.lease_length()),
            token.into(),
        );
        Ok(Hold::Held)
    }

    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let now = Instant::now();
        let mut records = self.records();
        self.set_mark(&mut records, id, now);
        Ok(records.release(id, token, now))
    }

    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        Ok(self.records().release(id, token, Instant::now()))
    }
}

#[async_trait]
impl Marker for MemoryStore {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        let retention = self.settings.retention.of_steps("memory")?;
        let now = Instant::now();
        // A step's name has no colon, so that no two pairs make one key.
        let key = format!("{step}:{id}");
        let mut records = self.records();
        if records.steps.live(&key, now).is_some() {
            return Ok(false);
        }
        let until = now.checked_add(retention.duration());
        records.steps.insert(key.into(), until, ());
        records.steps.shrink(now, self.settings.maximum);
        Ok(true)
    }
}

#[async_trait]
impl Inventory for MemoryStore {
    async fn stats(&self) -> Result<Stats, StoreError> {
        let now = Instant::now();
        let records = self.records();
        let (marks, ended_marks) = records.marks.count(now);
        let (leases, ended_leases) = records.leases.count(now);
        let (steps, ended_steps) = records.steps.count(now);
        Ok(Stats {
            marks,
            leases,
            steps,
            expired: ended_marks + ended_leases + ended_steps,
        })
    }

    /// All on one page, whatever the limit: this is a single process.
    async fn list(&self, _from: Option<&str>, _limit: u32) -> Result<Page, StoreError> {
        let now = Instant::now();
        let records = self.records();
        let marks = records
            .marks
            .iter(now)
            .map(|(id, left)| (id, Kind::Mark, left));
        let leases = records
            .leases
            .iter(now)
            .map(|(id, left)| (id, Kind::Lease, left));
        Ok(Page {
            entries: marks
                .chain(leases)
                .map(|(id, kind, left)| self.entry(id, kind, left))
                .collect(),
            next: None,
        })
    }

    async fn inspect(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let now = Instant::now();
        let records = self.records();
        let mark = records
            .marks
            .live(id, now)
            .map(|(until, _)| (Kind::Mark, *until));
        let lease = records
            .leases
            .live(id, now)
            .map(|(until, _)| (Kind::Lease, *until));
        Ok([mark, lease]
            .into_iter()
            .flatten()
            .map(|(kind, until)| self.entry(id, kind, until.map(|until| until - now)))
            .collect())
    }

    async fn collect(&self, _batch: u32) -> Result<u64, StoreError> {
        // What has ended is taken away by whatever is written next.
        Ok(0)
    }

    async fn migrate(&self) -> Result<String, StoreError> {
        Ok("nothing to create in memory".into())
    }
}

#[derive(Default)]
struct Records {
    marks: Expiring<()>,
    steps: Expiring<()>,
    leases: Expiring<String>,
    /// Makes tokens: one process has one counter.
    claims: u64,
}

impl Records {
    fn owns(&self, id: &str, token: &str, now: Instant) -> bool {
        self.leases
            .live(id, now)
            .is_some_and(|(_, owner)| owner == token)
    }

    fn release(&mut self, id: &str, token: &str, now: Instant) -> Hold {
        if self.owns(id, token, now) {
            self.leases.remove(id);
            Hold::Held
        } else {
            Hold::Lost
        }
    }
}

/// Values that end at a given time, or never, in the order in which they were
/// written last. All of one map last equally long, so that the first to have
/// been written is the first to end.
struct Expiring<V>(LinkedHashMap<Arc<str>, (Option<Instant>, V)>);

impl<V> Default for Expiring<V> {
    fn default() -> Self {
        Self(LinkedHashMap::new())
    }
}

impl<V> Expiring<V> {
    fn live(&self, key: &str, now: Instant) -> Option<&(Option<Instant>, V)> {
        self.0.get(key).filter(|(until, _)| is_live(*until, now))
    }

    fn insert(&mut self, key: Arc<str>, until: Option<Instant>, value: V) {
        self.0.insert(key, (until, value));
    }

    fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// How many are live, and how many have ended.
    fn count(&self, now: Instant) -> (u64, u64) {
        let live = self.iter(now).count() as u64;
        (live, self.0.len() as u64 - live)
    }

    /// The live keys, and how long each will last.
    fn iter(&self, now: Instant) -> impl Iterator<Item = (&str, Option<Duration>)> {
        self.0
            .iter()
            .filter(move |(_, (until, _))| is_live(*until, now))
            .map(move |(key, (until, _))| (&**key, until.map(|until| until - now)))
    }

    /// Takes away what has ended, and the oldest beyond a maximum.
    fn shrink(&mut self, now: Instant, maximum: usize) {
        while self.0.len() > maximum
            || self
                .0
                .front()
                .is_some_and(|(_, (until, _))| !is_live(*until, now))
        {
            self.0.pop_front();
        }
    }
}

fn is_live(until: Option<Instant>, now: Instant) -> bool {
    until.is_none_or(|until| now < until)
}

/// Whole milliseconds, rounded up: a live lease has at least one left.
fn left_ms(left: Duration) -> u64 {
    u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
