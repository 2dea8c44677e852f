//! What the database holds, for the operator who asks.

use super::PostgresStore;
use super::errors::Failure;
use super::session::Repeat;
use super::statements::Statements;
use crate::error::StoreError;
use crate::store::inventory::{Entry, Inventory, Kind, Page, Stats};
use crate::store::tables::{Cursor, duration};
use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// The tables as the project ships them.
const SHIPPED: &str = include_str!("postgres.sql");

#[async_trait]
impl Inventory for PostgresStore {
    async fn stats(&self) -> Result<Stats, StoreError> {
        let to = "count the records";
        let rows = self
            .ask_patiently(&self.statements().stats())
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        self.read(to, &rows, |row| {
            let count = |column: usize| row.try_get::<i64, _>(column).map(i64::unsigned_abs);
            Ok(Stats {
                marks: count(0)?,
                leases: count(1)?,
                steps: count(2)?,
                expired: count(3)?,
            })
        })
    }

    async fn list(&self, from: Option<&str>, limit: u32) -> Result<Page, StoreError> {
        let to = "list the records";
        let cursor = Cursor::parse(from)?;
        let limit = limit.max(1);
        let page = Statements::page(self.table(cursor.kind), cursor.after, limit);
        let rows = self
            .ask_patiently(&page)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        let entries = self.entries(to, cursor.kind, &rows)?;
        Ok(cursor.page(entries, limit))
    }

    async fn inspect(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let to = "look for an id";
        let mut entries = Vec::new();
        for kind in [Kind::Mark, Kind::Lease] {
            let question = Statements::entry(self.table(kind), id);
            let rows = self
                .ask(&question, Repeat::Safe)
                .await
                .map_err(|failure| self.failed(to, &failure))?;
            entries.extend(self.entries(to, kind, &rows)?);
        }
        Ok(entries)
    }

    async fn collect(&self, batch: u32) -> Result<u64, StoreError> {
        let to = "remove expired records";
        let mut removed = 0;
        for table in self.statements().tables().all() {
            let room = u64::from(batch).saturating_sub(removed);
            let rows = self
                .ask_patiently(&self.statements().collect(table, room))
                .await
                .map_err(|failure| self.failed(to, &failure))?;
            removed += self
                .read(to, &rows, |row| row.try_get::<i64, _>(0))?
                .unsigned_abs();
        }
        Ok(removed)
    }

    async fn migrate(&self) -> Result<String, StoreError> {
        let place = &self.inner.place;
        let missing = self.missing_tables().await?;
        if missing.is_empty() {
            return Ok(format!("{place}: all tables are there"));
        }
        self.ask_patiently(&self.statements().migrate(SHIPPED))
            .await
            .map_err(|failure| self.failed("create the tables", &failure))?;
        Ok(format!("{place}: created {}", missing.join(", ")))
    }
}

impl PostgresStore {
    fn table(&self, kind: Kind) -> &str {
        let tables = self.statements().tables();
        match kind {
            Kind::Mark => &tables.mark,
            Kind::Lease => &tables.lease,
        }
    }

    fn entries(&self, to: &str, kind: Kind, rows: &[PgRow]) -> Result<Vec<Entry>, StoreError> {
        rows.iter()
            .map(|row| entry(kind, row))
            .collect::<sqlx::Result<_>>()
            .map_err(|error| self.failed(to, &Failure::Refused(error)))
    }

    async fn missing_tables(&self) -> Result<Vec<&str>, StoreError> {
        let to = "look at its tables";
        let rows = self
            .ask(&self.statements().present(), Repeat::Safe)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        let mut missing = self.statements().tables().all().to_vec();
        for row in &rows {
            let (name, kind): (String, String) = row
                .try_get(0)
                .and_then(|name| Ok((name, row.try_get(1)?)))
                .map_err(|error| self.failed(to, &Failure::Refused(error)))?;
            // A table, one in parts, one elsewhere, or a view that stands for
            // one.
            if !matches!(&*kind, "r" | "p" | "f" | "v") {
                return Err(StoreError::Rejected(format!(
                    "{}: {name} is there and is no table: use another prefix",
                    self.inner.place
                )));
            }
            missing.retain(|table| *table != name);
        }
        Ok(missing)
    }
}

fn entry(kind: Kind, row: &PgRow) -> sqlx::Result<Entry> {
    let (age, left): (Option<i64>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Entry::new(
        row.try_get(0)?,
        kind,
        age.map(duration),
        left.map(duration),
    ))
}
