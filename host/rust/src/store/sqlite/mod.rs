//! A store in a SQLite file: the durable one of a single machine.
//!
//! Any number of processes may share the file. Times are the machine's, read
//! inside each statement. See the contract's section 8 for the tables.

mod connect;
mod errors;
mod inventory;
mod statements;
mod transaction;

use crate::error::StoreError;
use crate::settings::{Consumer, LeaseLength, Retention};
use crate::store::tables::{DEFAULT_PREFIX, Found, Tables};
use crate::store::{Claims, Marker, Store, token};
use crate::types::{ClaimOutcome, Hold};
use async_trait::async_trait;
use errors::Tried;
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Row, Sqlite, SqlitePool};
use statements::Statements;
use std::sync::Arc;
use std::time::Duration;

/// What a [`SqliteStore`] writes, and how long it waits.
///
/// ```
/// use babelqueue_guard::settings::Consumer;
/// use babelqueue_guard::store::sqlite::SqliteSettings;
///
/// let mut settings = SqliteSettings::default();
/// settings.consumer = Some(Consumer::named("mail")?);
/// # Ok::<_, babelqueue_guard::settings::SettingError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SqliteSettings {
    /// What the tables' names begin with: `[a-z_][a-z0-9_]*`, or nothing.
    pub prefix: String,
    /// The consumer's name, if several share the file.
    pub consumer: Option<Consumer>,
    /// How long marks and steps are kept.
    pub retention: Retention,
    /// How long a lease lasts.
    pub lease: LeaseLength,
    /// How long a write may wait for other writers. Of no effect on a pool of
    /// the caller's own, which has a `busy_timeout` already.
    pub busy_timeout: Duration,
}

/// `babelqueue_`, no consumer's name, fourteen days, sixty seconds; ten
/// seconds for other writers.
impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            prefix: DEFAULT_PREFIX.into(),
            consumer: None,
            retention: Retention::default(),
            lease: LeaseLength::default(),
            busy_timeout: Duration::from_secs(10),
        }
    }
}

/// Marks, leases and steps in a SQLite file. Clones share its connection.
///
/// A mark that [`remember`](Store::remember) has reported survives the end of
/// the process, and of the machine if its disk keeps what it was told to.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pool: SqlitePool,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `SQLite at path`, for errors.
    place: String,
    tables: Tables,
    statements: Statements,
    retention: Retention,
    lease: LeaseLength,
}

impl SqliteStore {
    /// The pool of connections, for transactions beside the store's own work.
    #[must_use]
    pub fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    fn retention(&self) -> Option<i64> {
        self.inner.retention.millis().map(|millis| millis.signed())
    }

    fn lease(&self) -> i64 {
        self.inner.lease.millis().signed()
    }

    /// Tells what an error means, and looks at what is missing if a statement
    /// could not even be prepared.
    async fn failed(&self, to: &str, error: sqlx::Error) -> StoreError {
        let tried = Tried {
            place: &self.inner.place,
            to,
        };
        if errors::is_unprepared(&error)
            && let Ok(missing) = self.missing_tables().await
            && !missing.is_empty()
        {
            return tried.missing_tables(&missing);
        }
        tried.failed(&error)
    }

    async fn missing_tables(&self) -> sqlx::Result<Vec<&str>> {
        let rows = statement(&self.inner.statements.present)
            .fetch_all(&self.pool)
            .await?;
        let present: Vec<String> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        let mut missing = self.inner.tables.all().to_vec();
        missing.retain(|table| !present.iter().any(|there| there == table));
        Ok(missing)
    }

    async fn take_and_look(
        &self,
        connection: &mut PoolConnection<Sqlite>,
        id: &str,
        token: &str,
    ) -> sqlx::Result<Found> {
        statement(&self.inner.statements.take)
            .bind(id)
            .bind(token)
            .bind(self.lease())
            .execute(&mut **connection)
            .await?;
        let row = statement(&self.inner.statements.look)
            .bind(id)
            .bind(token)
            .fetch_one(&mut **connection)
            .await?;
        let found = Found {
            marked: row.try_get(0)?,
            ours: row.try_get(1)?,
            left: row.try_get(2)?,
        };
        if found.is_in_vain() {
            self.drop_lease(connection, id, token).await?;
        }
        Ok(found)
    }

    async fn drop_lease(
        &self,
        connection: &mut sqlx::SqliteConnection,
        id: &str,
        token: &str,
    ) -> sqlx::Result<Hold> {
        let was_live = statement(&self.inner.statements.release)
            .bind(id)
            .bind(token)
            .fetch_optional(connection)
            .await?
            .map(|row| row.try_get(0))
            .transpose()?;
        Ok(held(was_live == Some(true)))
    }

    async fn mark_and_drop(&self, id: &str, token: &str) -> sqlx::Result<Hold> {
        // One transaction, for the sake of one wait for the disk.
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        statement(&self.inner.statements.remember)
            .bind(id)
            .bind(self.retention())
            .execute(&mut *transaction)
            .await?;
        let hold = self.drop_lease(&mut transaction, id, token).await?;
        transaction.commit().await?;
        Ok(hold)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        let asked = async {
            let row = statement(&self.inner.statements.seen)
                .bind(id)
                .fetch_one(&self.pool)
                .await?;
            row.try_get(0)
        };
        match asked.await {
            Ok(seen) => Ok(seen),
            Err(error) => Err(self.failed("look for a mark", error).await),
        }
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        let written = statement(&self.inner.statements.remember)
            .bind(id)
            .bind(self.retention())
            .execute(&self.pool)
            .await;
        match written {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed("set a mark", error).await),
        }
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        let removed = statement(&self.inner.statements.forget)
            .bind(id)
            .execute(&self.pool)
            .await;
        match removed {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed("remove a mark", error).await),
        }
    }
}

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        let token = token::fresh()?;
        let claimed = async {
            let mut connection = self.pool.acquire().await?;
            self.take_and_look(&mut connection, id, &token).await
        };
        match claimed.await {
            Ok(found) => Ok(found.outcome(token, self.inner.lease.millis().get())),
            Err(error) => {
                // The lease may have been taken before the look failed. What
                // cannot be given back lapses.
                let _ = self.release(id, &token).await;
                Err(self.failed("claim an id", error).await)
            }
        }
    }

    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let renewed = statement(&self.inner.statements.renew)
            .bind(id)
            .bind(token)
            .bind(self.lease())
            .execute(&self.pool)
            .await;
        match renewed {
            Ok(renewed) => Ok(held(renewed.rows_affected() == 1)),
            Err(error) => Err(self.failed("renew a lease", error).await),
        }
    }

    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        match self.mark_and_drop(id, token).await {
            Ok(hold) => Ok(hold),
            Err(error) => Err(self.failed("set a mark", error).await),
        }
    }

    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let dropped = async {
            let mut connection = self.pool.acquire().await?;
            self.drop_lease(&mut connection, id, token).await
        };
        match dropped.await {
            Ok(hold) => Ok(hold),
            Err(error) => Err(self.failed("release a lease", error).await),
        }
    }
}

#[async_trait]
impl Marker for SqliteStore {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        let retention = self.inner.retention.of_steps(&self.inner.place)?;
        let set = statement(&self.inner.statements.set_once)
            .bind(id)
            .bind(step)
            .bind(retention.signed())
            .execute(&self.pool)
            .await;
        match set {
            Ok(set) => Ok(set.rows_affected() == 1),
            Err(error) => Err(self.failed("set a step's mark", error).await),
        }
    }
}

/// All that varies in a statement's text are names that [`Tables`] has
/// checked.
fn statement(sql: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(sql.clone()))
}

fn held(held: bool) -> Hold {
    if held { Hold::Held } else { Hold::Lost }
}
