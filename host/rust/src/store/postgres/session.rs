//! Asking the server: a connection for each question, a limit in time, and
//! what is asked again.

use super::PostgresStore;
use super::errors::{Failure, Tried};
use crate::error::StoreError;
use crate::store::backoff::{CONFLICTS, backoff};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Postgres};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long an operator may wait for what takes time proportional to what the
/// tables hold.
const PATIENCE: Duration = Duration::from_secs(600);

/// What may be done about an answer that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Asked again: twice done is as good as once.
    Safe,
    /// Asked once.
    Never,
}

impl PostgresStore {
    /// Sends the statements as one message, and gives the rows of all of them.
    pub(super) async fn ask(
        &self,
        statements: &str,
        repeat: Repeat,
    ) -> Result<Vec<PgRow>, Failure> {
        self.ask_within(self.inner.timeout, statements, repeat)
            .await
    }

    /// The same for an operator, who waits.
    pub(super) async fn ask_patiently(&self, statements: &str) -> Result<Vec<PgRow>, Failure> {
        self.ask_within(PATIENCE, statements, Repeat::Safe).await
    }

    pub(super) fn failed(&self, to: &str, failure: &Failure) -> StoreError {
        let place = &self.inner.place;
        Tried { place, to }.failed(failure, &self.pool)
    }

    async fn ask_within(
        &self,
        limit: Duration,
        statements: &str,
        repeat: Repeat,
    ) -> Result<Vec<PgRow>, Failure> {
        let message = self.inner.statements.message(statements);
        let limit = Limit::begin(limit);
        // What is asked once must not meet a connection that broke long ago.
        let mut tested = repeat == Repeat::Never;
        let mut conflicts = 0;
        loop {
            let connection = self.lend(tested, limit).await?;
            let failure = match connection.ask(&message, limit).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            if failure.is_conflict() && conflicts < CONFLICTS {
                sleep(backoff(conflicts)).await;
                conflicts += 1;
            } else if matches!(failure, Failure::Lost(_)) && repeat == Repeat::Safe && !tested {
                // After a restart of the server every connection of the pool
                // is broken.
                tested = true;
            } else {
                return Err(failure);
            }
        }
    }

    async fn lend(&self, tested: bool, limit: Limit) -> Result<Lent, Failure> {
        loop {
            // The pool waits for as long as it is set to, which may be longer.
            let connection = match timeout_at(limit.until, self.pool.acquire()).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => {
                    return Err(Failure::NoneFree(limit.begun.elapsed()));
                }
                Ok(Err(error)) => return Err(Failure::NotConnected(error)),
            };
            let mut lent = Lent(Some(connection));
            if !tested || lent.is_good(limit).await {
                return Ok(lent);
            }
        }
    }
}

/// How long one question may take, with all that belongs to it.
#[derive(Clone, Copy)]
struct Limit {
    begun: Instant,
    until: Instant,
}

impl Limit {
    fn begin(limit: Duration) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            until: begun + limit,
        }
    }
}

/// A connection of the pool. It goes back only when its question has been
/// answered: one that is given up, or dropped in the middle, is closed, so
/// that nobody else gets the answer, and waits for it.
struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    async fn ask(mut self, message: &str, limit: Limit) -> Result<Vec<PgRow>, Failure> {
        let Some(connection) = self.0.as_mut() else {
            return Err(Failure::NoneFree(Duration::ZERO));
        };
        let answer = match timeout_at(limit.until, query(connection, message)).await {
            Ok(answer) => answer.map_err(Failure::of),
            Err(_elapsed) => Err(Failure::Unanswered(limit.begun.elapsed())),
        };
        if !answer.as_ref().is_err_and(Failure::is_unknown) {
            // To the pool.
            drop(self.0.take());
        }
        answer
    }

    async fn is_good(&mut self, limit: Limit) -> bool {
        match self.0.as_mut() {
            Some(connection) => {
                matches!(timeout_at(limit.until, connection.ping()).await, Ok(Ok(())))
            }
            None => false,
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

/// Sends one message of the simple protocol.
pub(super) async fn query(
    connection: &mut PgConnection,
    message: &str,
) -> sqlx::Result<Vec<PgRow>> {
    // What comes from outside is in it as hexadecimal digits.
    sqlx::raw_sql(AssertSqlSafe(message))
        .fetch_all(connection)
        .await
}
