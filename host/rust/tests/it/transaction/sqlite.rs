//! In SQLite.

use super::{Shop, body, obeys_the_rules, pay};
use babelqueue_guard::sqlx::sqlite::SqliteConnectOptions;
use babelqueue_guard::sqlx::{
    Error, Result, Sqlite, SqliteConnection, SqlitePool, query, query_as, query_scalar,
};
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::transaction::{Running, TransactionGuard};
use babelqueue_guard::{Processed, Store};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub(super) struct File(TempDir);

impl File {
    pub(super) async fn new() -> Option<Self> {
        let file = Self(tempfile::tempdir().unwrap());
        query("CREATE TABLE payments (order_id TEXT)")
            .execute(file.store().await.pool())
            .await
            .unwrap();
        Some(file)
    }

    pub(super) fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("shop.db").display())
    }
}

impl Shop for File {
    type Store = SqliteStore;
    type Database = Sqlite;

    async fn store(&self) -> SqliteStore {
        SqliteStore::connect(&self.url(), &SqliteSettings::default())
            .await
            .unwrap()
    }

    async fn pay(connection: &mut SqliteConnection, order: &str) -> Result<()> {
        query("INSERT INTO payments VALUES (?)")
            .bind(order)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn stumble(connection: &mut SqliteConnection) -> Result<()> {
        query("SELECT no_such_column FROM payments")
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn paid(&self, order: &str) -> i64 {
        // On a connection of its own: a reader waits for nobody.
        let options: SqliteConnectOptions = self.url().parse().unwrap();
        let pool = SqlitePool::connect_with(options).await.unwrap();
        query_scalar("SELECT count(*) FROM payments WHERE order_id = ?")
            .bind(order)
            .fetch_one(&pool)
            .await
            .unwrap()
    }

    async fn payments(&self) -> usize {
        let (all, orders): (i64, i64) =
            query_as("SELECT count(*), count(DISTINCT order_id) FROM payments")
                .fetch_one(self.store().await.pool())
                .await
                .unwrap();
        assert_eq!(all, orders);
        usize::try_from(all).unwrap()
    }

    async fn expire(&self) {
        query("UPDATE babelqueue_idempotency SET expires_at = 1")
            .execute(self.store().await.pool())
            .await
            .unwrap();
    }

    fn spawn(guard: TransactionGuard<SqliteStore>, id: &'static str) -> JoinHandle<()> {
        tokio::spawn(async move {
            // With something borrowed, as most handlers have.
            let order = id.to_owned();
            let handler = async |mut run: Running<'static, Self::Store>| {
                Self::pay(&mut run, &order).await?;
                Ok::<_, Error>(run.done(()))
            };
            let _ = guard.process(&body(id), handler).await.unwrap();
        })
    }
}

obeys_the_rules!(File::new().await);

/// The upgrade of a deferred transaction would fail at once, whatever the
/// `busy_timeout`.
#[tokio::test(flavor = "multi_thread")]
async fn many_connections_wait_for_one_another() {
    let Some(file) = File::new().await else {
        return;
    };
    let workers: Vec<_> = (0..6)
        .map(|_| {
            let url = file.url();
            tokio::spawn(async move {
                let store = SqliteStore::connect(&url, &SqliteSettings::default())
                    .await
                    .unwrap();
                let guard = TransactionGuard::new(store).unwrap();
                for n in 0..30 {
                    let processed = guard
                        .process(&body(&n.to_string()), pay::<File>)
                        .await
                        .unwrap();
                    assert!(processed.acknowledge(), "{processed:?}");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    for n in 0..30 {
        assert_eq!(file.paid(&n.to_string()).await, 1, "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_too_long_is_told_and_may_come_again() {
    let Some(file) = File::new().await else {
        return;
    };
    let mut settings = SqliteSettings::default();
    settings.busy_timeout = Duration::from_millis(200);
    let store = SqliteStore::connect(&file.url(), &settings).await.unwrap();
    let guard = TransactionGuard::new(store.clone()).unwrap();
    let other = file.store().await;
    let writing = other.pool().begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = guard.process(&body("a"), pay::<File>).await.unwrap_err();
    assert_eq!(error.class(), "unavailable", "{error}");
    writing.rollback().await.unwrap();
    let processed = guard.process(&body("a"), pay::<File>).await.unwrap();
    assert!(matches!(processed, Processed::Ran { .. }));
    assert!(store.seen("a").await.unwrap());
}
