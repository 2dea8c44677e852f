//! What the file holds, for the operator who asks.

use super::statements::Entries;
use super::{SqliteStore, statement};
use crate::error::StoreError;
use crate::store::inventory::{Entry, Inventory, Kind, Page, Stats};
use crate::store::tables::{Cursor, duration};
use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row};

/// The tables as the project ships them.
const SHIPPED: &str = include_str!("sqlite.sql");

#[async_trait]
impl Inventory for SqliteStore {
    async fn stats(&self) -> Result<Stats, StoreError> {
        match self.count().await {
            Ok(stats) => Ok(stats),
            Err(error) => Err(self.failed("count the records", error).await),
        }
    }

    async fn list(&self, from: Option<&str>, limit: u32) -> Result<Page, StoreError> {
        let cursor = Cursor::parse(from)?;
        match self.page(&cursor, limit.max(1)).await {
            Ok(entries) => Ok(cursor.page(entries, limit.max(1))),
            Err(error) => Err(self.failed("list the records", error).await),
        }
    }

    async fn inspect(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let looked = async {
            let mut entries = Vec::new();
            for kind in [Kind::Mark, Kind::Lease] {
                let row = statement(&self.entries(kind).one)
                    .bind(id)
                    .fetch_optional(&self.pool)
                    .await?;
                if let Some(row) = row {
                    entries.push(entry(kind, &row)?);
                }
            }
            Ok(entries)
        };
        match looked.await {
            Ok(entries) => Ok(entries),
            Err(error) => Err(self.failed("look for an id", error).await),
        }
    }

    async fn collect(&self, batch: u32) -> Result<u64, StoreError> {
        let mut removed = 0;
        for sql in &self.inner.statements.collect {
            let room = u64::from(batch).saturating_sub(removed);
            let collected = statement(sql)
                .bind(i64::try_from(room).unwrap_or(i64::MAX))
                .execute(&self.pool)
                .await;
            match collected {
                Ok(collected) => removed += collected.rows_affected(),
                Err(error) => return Err(self.failed("remove expired records", error).await),
            }
        }
        Ok(removed)
    }

    async fn migrate(&self) -> Result<String, StoreError> {
        match self.create_tables().await {
            Ok(created) if created.is_empty() => {
                Ok(format!("{}: all tables are there", self.inner.place))
            }
            Ok(created) => Ok(format!(
                "{}: created {}",
                self.inner.place,
                created.join(", ")
            )),
            Err(error) => Err(self.failed("create the tables", error).await),
        }
    }
}

impl SqliteStore {
    async fn count(&self) -> sqlx::Result<Stats> {
        let row = statement(&self.inner.statements.stats)
            .fetch_one(&self.pool)
            .await?;
        let count = |column: usize| row.try_get::<i64, _>(column).map(i64::unsigned_abs);
        Ok(Stats {
            marks: count(0)?,
            leases: count(1)?,
            steps: count(2)?,
            expired: count(3)?,
        })
    }

    async fn page(&self, cursor: &Cursor<'_>, limit: u32) -> sqlx::Result<Vec<Entry>> {
        let rows = statement(&self.entries(cursor.kind).page)
            .bind(cursor.after)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(|row| entry(cursor.kind, row)).collect()
    }

    async fn create_tables(&self) -> sqlx::Result<Vec<&str>> {
        let missing = self.missing_tables().await?;
        // Several processes may do this at once.
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::raw_sql(AssertSqlSafe(self.inner.tables.rename(SHIPPED)))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(missing)
    }

    fn entries(&self, kind: Kind) -> &Entries {
        match kind {
            Kind::Mark => &self.inner.statements.marks,
            Kind::Lease => &self.inner.statements.leases,
        }
    }
}

fn entry(kind: Kind, row: &SqliteRow) -> sqlx::Result<Entry> {
    let (age, left): (Option<i64>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Entry::new(
        row.try_get(0)?,
        kind,
        age.map(duration),
        left.map(duration),
    ))
}
