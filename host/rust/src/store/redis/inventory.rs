//! What an operator asks.

use super::client::Target;
use super::keys::Record;
use super::link::Repeat;
use super::{RedisStore, get, pttl};
use crate::error::StoreError;
use crate::settings::{Millis, Retention};
use crate::store::inventory::{Entry, Inventory, Kind, Page, Stats};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::{Value, from_redis_value_ref};
use std::time::Duration;

/// How many keys the server looks at in one step of a count.
const STEP: u32 = 1_000;

#[async_trait]
impl Inventory for RedisStore {
    /// By SCAN over all keys of the database; a key may be counted twice if
    /// the server rearranges its table meanwhile.
    async fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        let mut from = None;
        loop {
            let (keys, next) = self.scan(from.as_deref(), STEP).await?;
            for key in keys {
                match self.keys.parse(&key) {
                    Some((Record::Mark, _)) => stats.marks += 1,
                    Some((Record::Lease, _)) => stats.leases += 1,
                    Some((Record::Once, _)) => stats.steps += 1,
                    None => {}
                }
            }
            match next {
                Some(next) => from = Some(next),
                None => return Ok(stats),
            }
        }
    }

    /// By SCAN, in no order; what is there may be listed twice.
    async fn list(&self, from: Option<&str>, limit: u32) -> Result<Page, StoreError> {
        let (keys, next) = self.scan(from, limit.max(1)).await?;
        let records = keys.iter().filter_map(|key| {
            let (kind, id) = match self.keys.parse(key)? {
                (Record::Mark, id) => (Kind::Mark, id),
                (Record::Lease, id) => (Kind::Lease, id),
                (Record::Once, _) => return None,
            };
            Some(async move {
                let left = self.left(key).await?;
                Ok::<_, StoreError>(left.map(|left| self.entry(id, kind, left)))
            })
        });
        let entries = try_join_all(records).await?;
        Ok(Page {
            entries: entries.into_iter().flatten().collect(),
            next,
        })
    }

    async fn inspect(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let mut found = Vec::new();
        for (kind, key) in [
            (Kind::Mark, self.keys.mark(id)),
            (Kind::Lease, self.keys.lease(id)),
        ] {
            // Another type under the key is an error here as anywhere.
            let to = "look at a record";
            self.ask(to, &key, get(&key), Repeat::Once).await?;
            if let Some(left) = self.left(&key).await? {
                found.push(self.entry(id, kind, left));
            }
        }
        Ok(found)
    }

    async fn collect(&self, _batch: u32) -> Result<u64, StoreError> {
        // The server removes what has expired.
        Ok(0)
    }

    async fn migrate(&self) -> Result<String, StoreError> {
        self.check().await?;
        Ok(format!("nothing to create on {}", self.link.name()))
    }
}

/// How long a key lasts.
#[derive(Clone, Copy)]
enum Left {
    For(Duration),
    Forever,
}

impl RedisStore {
    /// Strings whose keys have this store's prefix, and where to go on.
    async fn scan(
        &self,
        from: Option<&str>,
        count: u32,
    ) -> Result<(Vec<String>, Option<String>), StoreError> {
        let asked = self.asked("list the keys", None);
        let nodes = self.link.nodes().await;
        let nodes = nodes.map_err(|failure| asked.failed(&failure))?;
        let (cursor, node) = match from {
            Some(from) => from.split_once('@').ok_or_else(|| {
                StoreError::Rejected(format!("{from:?} is not where a page began"))
            })?,
            None => ("0", nodes.first().map_or("", String::as_str)),
        };
        let mut command = redis::cmd("SCAN");
        command.arg(cursor);
        command.arg("MATCH").arg(self.keys.pattern());
        command.arg("COUNT").arg(count);
        command.arg("TYPE").arg("string");
        let target = Target::Node(node);
        let sent = self.link.send(target, [command], Repeat::Once).await;
        let [reply] = sent.map_err(|failure| asked.failed(&failure))?;
        let reply = asked.answer(reply)?;
        let (cursor, keys): (String, Vec<Vec<u8>>) =
            from_redis_value_ref(&reply).map_err(|_| asked.surprised(&reply))?;
        let next = if cursor == "0" {
            let after = nodes.iter().find(|other| other.as_str() > node);
            after.map(|after| format!("0@{after}"))
        } else {
            Some(format!("{cursor}@{node}"))
        };
        // What is not text is none of ours.
        let keys = keys
            .into_iter()
            .filter_map(|key| String::from_utf8(key).ok());
        Ok((keys.collect(), next))
    }

    /// How long a key lasts, if it is there.
    async fn left(&self, key: &str) -> Result<Option<Left>, StoreError> {
        let to = "read how long a record lasts";
        let reply = self.ask(to, key, pttl(key), Repeat::Once).await?;
        Ok(match reply {
            Value::Int(-1) => Some(Left::Forever),
            Value::Int(left) => u64::try_from(left)
                .ok()
                .map(|left| Left::For(Duration::from_millis(left))),
            reply => return Err(self.asked(to, Some(key)).surprised(&reply)),
        })
    }

    fn entry(&self, id: &str, kind: Kind, left: Left) -> Entry {
        let whole = match (kind, self.retention) {
            (Kind::Lease, _) => Some(self.lease),
            (Kind::Mark, Retention::For(retention)) => Some(retention),
            (Kind::Mark, Retention::Forever) => None,
        };
        let left = match left {
            Left::For(left) => Some(left),
            Left::Forever => None,
        };
        // Somebody with another retention may have written it.
        let age = whole
            .map(Millis::duration)
            .zip(left)
            .and_then(|(whole, left)| whole.checked_sub(left));
        Entry::new(id.to_owned(), kind, age, left)
    }
}
