//! The ledger of the mode `transaction`: a table in the store's own database,
//! with a row for each effect, written by the handler's transaction.
//!
//! Nothing but the guard keeps a message from having two.

use crate::messages::{Delivery, Result as Told};
use crate::settings::{Settings, StoreKind};
use crate::worker::{Consumer, until_reached};
use babelqueue_guard::sqlx::{self, PgConnection, SqliteConnection, query, query_as, raw_sql};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::transaction::{Done, Running, TransactionGuard, TransactionalStore};
use babelqueue_guard::{Error, Mark, Processed, StoreError};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

const TABLE: &str = "CREATE TABLE rig_effects (id text NOT NULL)";
const COUNT: &str = "SELECT id, count(*) FROM rig_effects GROUP BY id";

pub(crate) async fn postgres(url: &str) -> Result<PostgresStore, Box<dyn std::error::Error>> {
    let settings = PostgresSettings::default();
    until_reached(async || PostgresStore::connect(url, &settings).await).await
}

pub(crate) async fn sqlite(url: &str) -> Result<SqliteStore, Box<dyn std::error::Error>> {
    let settings = SqliteSettings::default();
    until_reached(async || SqliteStore::connect(url, &settings).await).await
}

/// Creates the table.
pub(crate) async fn prepare(
    settings: &Settings,
    url: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    match settings.store {
        StoreKind::Postgres => raw_sql(TABLE)
            .execute(postgres(url).await?.pool())
            .await
            .map(drop)?,
        StoreKind::Sqlite => raw_sql(TABLE)
            .execute(sqlite(url).await?.pool())
            .await
            .map(drop)?,
        StoreKind::Redis => {
            return Err("redis has no transactions that a handler could join".into());
        }
    }
    Ok(())
}

/// How many effects each message has had.
pub(crate) async fn count(
    settings: &Settings,
    url: &str,
) -> Result<HashMap<String, u64>, Box<dyn std::error::Error>> {
    let rows: Vec<(String, i64)> = match settings.store {
        StoreKind::Postgres => {
            query_as(COUNT)
                .fetch_all(postgres(url).await?.pool())
                .await?
        }
        StoreKind::Sqlite => query_as(COUNT).fetch_all(sqlite(url).await?.pool()).await?,
        StoreKind::Redis => Vec::new(),
    };
    rows.into_iter()
        .map(|(id, count)| Ok((id, u64::try_from(count)?)))
        .collect()
}

/// A database that has the table.
pub(crate) trait Effects: TransactionalStore {
    /// Has the effect of a message, on its handler's connection.
    fn add(
        connection: &mut <Self::Database as sqlx::Database>::Connection,
        id: &str,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;
}

impl Effects for PostgresStore {
    async fn add(connection: &mut PgConnection, id: &str) -> sqlx::Result<()> {
        let effect = query("INSERT INTO rig_effects VALUES ($1)").bind(id);
        effect.execute(connection).await.map(drop)
    }
}

impl Effects for SqliteStore {
    async fn add(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
        let effect = query("INSERT INTO rig_effects VALUES (?)").bind(id);
        effect.execute(connection).await.map(drop)
    }
}

#[derive(Debug)]
enum Failure {
    /// The delivery says so.
    Asked,
    Database(sqlx::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Asked => "failed as asked",
            Self::Database(_) => "the effect could not be written",
        })
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Asked => None,
            Self::Database(error) => Some(error),
        }
    }
}

impl<S: Effects> Consumer for TransactionGuard<S> {
    async fn process(&self, delivery: &Delivery) -> Told {
        let handler = |run| handle(run, delivery);
        match TransactionGuard::process(self, &delivery.body, handler).await {
            Ok(Processed::Ran {
                mark: Mark::Set, ..
            }) => Told::Marked,
            Ok(Processed::Ran { mark, .. }) => Told::Refused(format!("{mark:?}")),
            Ok(Processed::Failed {
                error: Failure::Asked,
                ..
            }) => Told::Failed,
            Ok(Processed::Failed { .. }) => Told::Unavailable,
            Ok(Processed::Skipped { .. }) => Told::Skipped,
            Ok(Processed::Parked(parked)) => Told::Refused(format!("{parked:?}")),
            Err(Error::Store(StoreError::Unavailable(_))) => Told::Unavailable,
            Err(error) => Told::Refused(error.to_string()),
        }
    }
}

async fn handle<S: Effects>(
    mut run: Running<'static, S>,
    delivery: &Delivery,
) -> Result<Done<S, ()>, Failure> {
    let id = run.id().unwrap_or_default().to_owned();
    S::add(&mut run, &id).await.map_err(Failure::Database)?;
    sleep(Duration::from_millis(delivery.work_ms)).await;
    if delivery.fails {
        return Err(Failure::Asked);
    }
    Ok(run.done(()))
}
