//! A store in PostgreSQL, 12 or later.
//!
//! See the contract's section 8 for the tables. All times are the server's.
//! Works through poolers that give each transaction another server: nothing is
//! prepared, and nothing is set in a session.

mod connect;
mod errors;
mod inventory;
mod session;
mod statements;
mod transaction;

use crate::error::StoreError;
use crate::settings::{Consumer, LeaseLength, Retention};
use crate::store::tables::{DEFAULT_PREFIX, Found};
use crate::store::{Claims, Marker, Store, token};
use crate::types::{ClaimOutcome, Hold};
use async_trait::async_trait;
use errors::Failure;
use session::Repeat;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use statements::Statements;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// What a [`PostgresStore`] writes, and how long it waits.
///
/// ```
/// use babelqueue_guard::settings::Consumer;
/// use babelqueue_guard::store::postgres::PostgresSettings;
///
/// let mut settings = PostgresSettings::default();
/// settings.consumer = Some(Consumer::named("mail")?);
/// # Ok::<_, babelqueue_guard::settings::SettingError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresSettings {
    /// What the tables' names begin with: `[a-z_][a-z0-9_]*`, or nothing. The
    /// tables are looked for in the role's `search_path`.
    pub prefix: String,
    /// The consumer's name, if several share the database.
    pub consumer: Option<Consumer>,
    /// How long marks and steps are kept.
    pub retention: Retention,
    /// How long a lease lasts.
    pub lease: LeaseLength,
    /// How long one question may take, with the wait for a connection and
    /// what has to be asked again. It waits for locks for half of it.
    pub timeout: Duration,
    /// How many connections there may be at once. Of no effect on a pool of
    /// the caller's own.
    pub connections: u32,
}

/// `babelqueue_`, no consumer's name, fourteen days, sixty seconds; five
/// seconds for a question, ten connections.
impl Default for PostgresSettings {
    fn default() -> Self {
        Self {
            prefix: DEFAULT_PREFIX.into(),
            consumer: None,
            retention: Retention::default(),
            lease: LeaseLength::default(),
            timeout: Duration::from_secs(5),
            connections: 10,
        }
    }
}

/// How long giving back a lease may take that may have been taken.
const GIVE_BACK: Duration = Duration::from_secs(1);

/// Marks, leases and steps in PostgreSQL. Clones share a pool of connections.
///
/// Each question is one round trip and one transaction, at READ COMMITTED and
/// committed at once.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pool: PgPool,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `PostgreSQL at host:port/database`, for errors.
    place: String,
    statements: Statements,
    retention: Retention,
    lease: LeaseLength,
    timeout: Duration,
}

impl PostgresStore {
    /// The pool of connections, for transactions beside the store's own work.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    fn statements(&self) -> &Statements {
        &self.inner.statements
    }

    /// Gives back a lease that may have been taken, as well as can be: else it
    /// lapses.
    async fn give_back(&self, id: &str, token: &str) {
        let released = timeout(GIVE_BACK, self.release(id, token)).await;
        if !matches!(released, Ok(Ok(_))) {
            tracing::warn!(id, "a claim that nobody needs lasts until it lapses");
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        let to = "look for a mark";
        let rows = self
            .ask(&self.statements().seen(id), Repeat::Safe)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        self.read(to, &rows, |row| row.try_get(0))
    }

    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        self.ask(&self.statements().remember(id), Repeat::Safe)
            .await
            .map_err(|failure| self.failed("set a mark", &failure))?;
        Ok(())
    }

    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        self.ask(&self.statements().forget(id), Repeat::Safe)
            .await
            .map_err(|failure| self.failed("remove a mark", &failure))?;
        Ok(())
    }
}

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        let to = "claim an id";
        let token = token::fresh()?;
        // Asked again with the same token: finding it then means won.
        let claimed = self
            .ask(&self.statements().claim(id, &token), Repeat::Safe)
            .await;
        let rows = match claimed {
            Ok(rows) => rows,
            Err(failure) => {
                if failure.is_unknown() {
                    self.give_back(id, &token).await;
                }
                return Err(self.failed(to, &failure));
            }
        };
        let found = self.read(to, &rows, |row| {
            Ok(Found {
                marked: row.try_get(0)?,
                ours: row.try_get(1)?,
                left: row.try_get(2)?,
            })
        })?;
        if found.is_in_vain() {
            self.give_back(id, &token).await;
        }
        Ok(found.outcome(token, self.inner.lease.millis().get()))
    }

    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let rows = self
            .ask(&self.statements().renew(id, token), Repeat::Safe)
            .await
            .map_err(|failure| self.failed("renew a lease", &failure))?;
        Ok(held(!rows.is_empty()))
    }

    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let to = "set a mark";
        let rows = self
            .ask(&self.statements().complete(id, token), Repeat::Safe)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        self.was_live(to, &rows)
    }

    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        let to = "release a lease";
        let rows = self
            .ask(&self.statements().release(id, token), Repeat::Safe)
            .await
            .map_err(|failure| self.failed(to, &failure))?;
        self.was_live(to, &rows)
    }
}

#[async_trait]
impl Marker for PostgresStore {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        self.inner.retention.of_steps(&self.inner.place)?;
        let rows = self
            .ask(&self.statements().set_once(id, step), Repeat::Never)
            .await
            .map_err(|failure| self.failed("set a step's mark", &failure))?;
        Ok(!rows.is_empty())
    }
}

impl PostgresStore {
    fn was_live(&self, to: &str, rows: &[PgRow]) -> Result<Hold, StoreError> {
        if rows.is_empty() {
            return Ok(Hold::Lost);
        }
        self.read(to, rows, |row| row.try_get(0)).map(held)
    }

    /// Reads the first row.
    fn read<T>(
        &self,
        to: &str,
        rows: &[PgRow],
        read: impl Fn(&PgRow) -> sqlx::Result<T>,
    ) -> Result<T, StoreError> {
        rows.first()
            .ok_or(sqlx::Error::RowNotFound)
            .and_then(read)
            .map_err(|error| self.failed(to, &Failure::Refused(error)))
    }
}

fn held(held: bool) -> Hold {
    if held { Hold::Held } else { Hold::Lost }
}
