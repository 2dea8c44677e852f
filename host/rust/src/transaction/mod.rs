//! The mark written by the handler's own transaction: both are committed, or
//! neither is (contract, section 5).
//!
//! This closes the window in which an effect has happened and its mark is
//! missing, also for a process that is killed, provided that the effect is in
//! the same database. Copies that race wait for one another at the mark; the
//! second sees the first one's and is skipped, and nothing aborts its
//! transaction.
//!
#![cfg_attr(feature = "sqlite", doc = "```")]
#![cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
//! use babelqueue_guard::sqlx::query;
//! use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
//! use babelqueue_guard::transaction::TransactionGuard;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = SqliteSettings::default();
//! let store = SqliteStore::connect("sqlite::memory:", &settings).await?;
//! # query("CREATE TABLE accounts (id, balance)").execute(store.pool()).await?;
//! # query("INSERT INTO accounts VALUES (7, 100)").execute(store.pool()).await?;
//! let guard = TransactionGuard::new(store)?;
//!
//! let body = br#"{"meta":{"id":"f1e2d3c4-b5a6-4789-90ab-cdef01234567"}}"#;
//! let processed = guard
//!     .process(&body[..], async |mut run| {
//!         query("UPDATE accounts SET balance = balance - 5 WHERE id = 7")
//!             .execute(&mut *run)
//!             .await?;
//!         Ok::<_, babelqueue_guard::sqlx::Error>(run.done("paid"))
//!     })
//!     .await?;
//! assert!(processed.acknowledge());
//! # Ok(())
//! # }
//! ```
//!
//! [`process`](TransactionGuard::process) begins and commits a transaction of
//! its own. Within one of the caller's, [`begin`](TransactionGuard::begin)
//! opens a savepoint, and what the handler has done is committed when the
//! caller commits.
//!
//! Leases are not looked at here: a consumer that claims and one that uses
//! transactions see each other's marks, and nothing else.

mod running;

pub use running::{Begun, Done, Running};

use crate::component::Component;
use crate::delivery::Delivery;
use crate::drive::Asked;
use crate::error::{Error, GuardError, StoreError};
use crate::processed::Processed;
use crate::settings::{Millis, SettingError};
use crate::store::Store;
use crate::store::backoff::{CONFLICTS, backoff};
use crate::types::Decision;
use crate::watch::{self, Ending, Handling};
use async_trait::async_trait;
use sqlx::{Connection, Database, Pool, Transaction};
use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

/// How long the database may take for one of the guard's own statements,
/// unless set.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A store whose marks can be written in a transaction.
///
/// The mark is the one that the plain store writes, in the same table.
#[async_trait]
pub trait TransactionalStore: Store + Clone {
    /// The kind of database.
    type Database: Database;

    /// What a transaction begins with: one that will not have to be upgraded
    /// in the middle.
    const BEGIN: &'static str;

    /// Where transactions of the guard's own begin.
    fn pool(&self) -> &Pool<Self::Database>;

    /// Sets the mark, unless there is a live one, and says whether it did.
    /// Waits for another transaction that has set it and not ended yet.
    async fn mark_first(
        &self,
        connection: &mut <Self::Database as Database>::Connection,
        id: &str,
    ) -> sqlx::Result<bool>;

    /// Sets the mark, or restarts its retention.
    async fn mark(
        &self,
        connection: &mut <Self::Database as Database>::Connection,
        id: &str,
    ) -> sqlx::Result<()>;

    /// Fails if the transaction can only be rolled back.
    async fn probe(
        &self,
        connection: &mut <Self::Database as Database>::Connection,
    ) -> sqlx::Result<()>;

    /// Whether the database has undone a transaction for the sake of another,
    /// and wants the whole of it to be run again.
    fn is_conflict(error: &sqlx::Error) -> bool;

    /// What an error means; `to` completes "could not …".
    async fn meaning(&self, to: &str, error: sqlx::Error) -> StoreError;
}

/// Makes the effect of a message happen exactly once, where the effect is in
/// the store's own database.
#[derive(Clone, Debug)]
pub struct TransactionGuard<S> {
    component: Component,
    store: S,
    begin: &'static str,
    timeout: Duration,
}

impl<S: TransactionalStore> TransactionGuard<S> {
    /// A guard over a store and its pool.
    ///
    /// # Errors
    ///
    /// This machine cannot run compiled WebAssembly.
    pub fn new(store: S) -> Result<Self, GuardError> {
        Ok(Self::with_component(Component::plain()?, store))
    }

    /// A guard with a component of the caller's own, for the WIT world
    /// `plain`.
    #[must_use]
    pub fn with_component(component: Component, store: S) -> Self {
        Self {
            component,
            store,
            begin: S::BEGIN,
            timeout: TIMEOUT,
        }
    }

    /// The same guard, whose own transactions begin with this statement, such
    /// as `BEGIN ISOLATION LEVEL SERIALIZABLE`.
    #[must_use]
    pub fn begin_with(self, statement: &'static str) -> Self {
        Self {
            begin: statement,
            ..self
        }
    }

    /// The same guard, which waits for this long for each statement of its
    /// own, instead of a minute. It does not limit the handler.
    ///
    /// # Errors
    ///
    /// Those of [`Millis::new`], naming `timeout`.
    pub fn with_timeout(self, timeout: Duration) -> Result<Self, SettingError> {
        let timeout = Millis::new("timeout", timeout)?.duration();
        Ok(Self { timeout, ..self })
    }

    /// Handles one delivery in a transaction of its own: begins, decides,
    /// calls the handler if it is to run, sets the mark, and commits.
    ///
    /// The handler gets the connection for its statements, and gives it back
    /// with what it returns, by [`Running::done`]. If it fails or panics, or
    /// its future is dropped, all that it did is rolled back.
    ///
    /// Where the database has undone the transaction for the sake of another
    /// (SQLSTATE 40001 and 40P01), the whole of it is run again, the handler
    /// included, a few times at most. This is also seen in the handler's
    /// error, if an [`sqlx::Error`] is that error or a source of it.
    ///
    /// # Errors
    ///
    /// The database or the component could not do its part. Nothing has been
    /// committed, unless the connection broke during the commit; the delivery
    /// must not be acknowledged, and its next one finds out.
    pub async fn process<'a, T, E, F, Fut>(
        &self,
        delivery: impl Into<Delivery<'a>>,
        handler: F,
    ) -> Result<Processed<T, E>, Error>
    where
        E: StdError + 'static,
        F: Fn(Running<'static, S>) -> Fut,
        Fut: Future<Output = Result<Done<S, T>, E>>,
    {
        let delivery = delivery.into();
        let span = watch::span(None, delivery.replay);
        async {
            let processed = self.attempts(&delivery, &handler).await;
            watch::decided("transaction", &processed);
            processed
        }
        .instrument(span)
        .await
    }

    async fn attempts<T, E, F, Fut>(
        &self,
        delivery: &Delivery<'_>,
        handler: &F,
    ) -> Result<Processed<T, E>, Error>
    where
        E: StdError + 'static,
        F: Fn(Running<'static, S>) -> Fut,
        Fut: Future<Output = Result<Done<S, T>, E>>,
    {
        let mut conflicts = 0;
        loop {
            let attempt = self.attempt(delivery, handler).await;
            let conflict = match &attempt {
                Ok(Processed::Failed { error, .. }) => is_conflict::<S>(error),
                Ok(_) => false,
                Err(trouble) => trouble.is_conflict::<S>(),
            };
            if !conflict || conflicts == CONFLICTS {
                return match attempt {
                    Ok(processed) => Ok(processed),
                    Err(trouble) => Err(trouble.explained(&self.store).await),
                };
            }
            tracing::debug!("the transaction is run again");
            sleep(backoff(conflicts)).await;
            conflicts += 1;
        }
    }

    /// Decides on a delivery within the caller's own transaction, in a
    /// savepoint. What [`Begun::Run`] gives is to be used for the handler's
    /// statements, and then told how the handler ended; dropped before that,
    /// it takes all of them back, and the mark with them.
    ///
    /// In SQLite the transaction should have begun with `BEGIN IMMEDIATE`.
    /// In PostgreSQL it waits for a racing delivery for as long as the
    /// `lock_timeout` that is in effect; above READ COMMITTED, the error for
    /// a race (SQLSTATE 40001) asks for the caller's whole transaction to be
    /// run again.
    ///
    /// # Errors
    ///
    /// The database or the component could not do its part. Nothing but the
    /// savepoint has been undone.
    pub async fn begin<'t, 'a>(
        &self,
        transaction: &'t mut Transaction<'_, S::Database>,
        delivery: impl Into<Delivery<'a>>,
    ) -> Result<Begun<'t, S>, Error> {
        let delivery = delivery.into();
        let asked = self.component.ask(&delivery)?;
        let begun = async {
            let savepoint = self
                .within("begin a savepoint", Connection::begin(&mut **transaction))
                .await?;
            self.decide(savepoint, asked, delivery.replay).await
        };
        let begun = match begun.await {
            Ok(begun) => Ok(begun),
            Err(trouble) => Err(trouble.explained(&self.store).await),
        };
        watch::decided("decide", &begun);
        begun
    }

    async fn attempt<T, E, F, Fut>(
        &self,
        delivery: &Delivery<'_>,
        handler: &F,
    ) -> Result<Processed<T, E>, Trouble>
    where
        F: Fn(Running<'static, S>) -> Fut,
        Fut: Future<Output = Result<Done<S, T>, E>>,
    {
        let asked = self.component.ask(delivery)?;
        watch::identified(asked.id());
        let begun = self.store.pool().begin_with(self.begin);
        let transaction = self.within("begin a transaction", begun).await?;
        let run = match self.decide(transaction, asked, delivery.replay).await? {
            Begun::Run(run) => run,
            Begun::Skip(id) => return Ok(Processed::Skipped { id }),
        };
        let id = run.ticket().id().map(str::to_owned);
        let handling = Handling::begin();
        match handler(run).await {
            Ok(done) => {
                handling.ended(Ending::Succeeded);
                let (run, value) = done.into_parts();
                let mark = run.end().await?;
                Ok(Processed::Ran { value, id, mark })
            }
            // The handler has dropped what it was given, and so it is rolled
            // back.
            Err(error) => {
                handling.ended(Ending::Failed);
                Ok(Processed::Failed { error, id })
            }
        }
    }

    /// `transaction` is the whole one, or a savepoint: its commit keeps what
    /// the handler does, its end without one takes it back.
    async fn decide<'t>(
        &self,
        mut transaction: Transaction<'t, S::Database>,
        asked: Asked,
        replay: bool,
    ) -> Result<Begun<'t, S>, Trouble> {
        let decision = match asked {
            Asked::Decided(decision) => decision,
            Asked::Seen { id, unseen } => {
                let set = self.store.mark_first(&mut transaction, &id);
                if self.within("set a mark", set).await? {
                    unseen
                } else {
                    self.component.answer_seen(&id, true)?
                }
            }
            Asked::Claim { .. } => return Err(mismatch().into()),
        };
        match decision {
            Decision::Run(ticket) => Ok(Begun::Run(Running::new(
                self.clone(),
                transaction,
                ticket,
                replay,
            ))),
            Decision::Skip(id) => {
                self.within("roll back", transaction.rollback()).await?;
                Ok(Begun::Skip(id))
            }
            Decision::Park(_) => Err(mismatch().into()),
        }
    }

    /// Waits for a statement of the guard's own; `to` completes "could not …".
    async fn within<T>(
        &self,
        to: &'static str,
        statement: impl Future<Output = sqlx::Result<T>>,
    ) -> Result<T, Trouble> {
        match timeout(self.timeout, statement).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Trouble::Database { to, error }),
            Err(_elapsed) => {
                let limit = self.timeout;
                let text = format!("the database did not answer in {limit:?}: could not {to}");
                Err(StoreError::Unavailable(text).into())
            }
        }
    }
}

/// What went wrong, before it is known what it means.
enum Trouble {
    Database {
        to: &'static str,
        error: sqlx::Error,
    },
    Other(Error),
}

impl Trouble {
    fn is_conflict<S: TransactionalStore>(&self) -> bool {
        matches!(self, Self::Database { error, .. } if S::is_conflict(error))
    }

    async fn explained<S: TransactionalStore>(self, store: &S) -> Error {
        match self {
            Self::Database { to, error } => store.meaning(to, error).await.into(),
            Self::Other(error) => error,
        }
    }
}

impl<E: Into<Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// Whether an error of the handler's comes from a conflict.
fn is_conflict<S: TransactionalStore>(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(S::is_conflict) {
            return true;
        }
        next = error.source();
    }
    false
}

fn mismatch() -> GuardError {
    GuardError::Misuse("transactions need a component for the world `plain`".into())
}
