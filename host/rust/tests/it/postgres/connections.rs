//! Pools of the caller's own, and too few connections.

use super::{Database, class};
use babelqueue_guard::sqlx::postgres::PgPoolOptions;
use babelqueue_guard::sqlx::raw_sql;
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::{ClaimOutcome, Claims, Guard, Marker, Processed, Store};
use std::time::Duration;

/// A pool of one connection, which the handler's own transaction takes.
async fn pool_of_one(database: &Database, timeout: Duration) -> PostgresStore {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect(&database.url())
        .await
        .unwrap();
    let mut settings = PostgresSettings::default();
    settings.timeout = timeout;
    PostgresStore::with_pool(pool, &settings).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_one_is_enough_for_a_handler_with_a_transaction() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.sql("CREATE TABLE effects (id text)");
    let store = pool_of_one(&database, Duration::from_secs(5)).await;
    for guard in [
        Guard::new(store.clone()).unwrap(),
        Guard::claiming(store.clone()).unwrap(),
    ] {
        let body = format!(r#"{{"meta":{{"id":"{}"}}}}"#, guard.is_claiming());
        for _ in 0..2 {
            let processed = guard.process(&body, async |_| {
                let mut transaction = store.pool().begin().await?;
                raw_sql("INSERT INTO effects VALUES ('a')")
                    .execute(&mut *transaction)
                    .await?;
                transaction.commit().await
            });
            assert!(processed.await.unwrap().acknowledge());
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM effects"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_inside_it_says_that_a_connection_is_missing() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = pool_of_one(&database, Duration::from_millis(300)).await;
    let guard = Guard::new(store.clone()).unwrap().with_steps(store.clone());
    let body = r#"{"meta":{"id":"a"}}"#;
    let processed = guard
        .process(body, async |context| {
            let transaction = store.pool().begin().await.unwrap();
            let asked = context.once("count").await;
            drop(transaction);
            asked
        })
        .await
        .unwrap();
    let Processed::Failed { error, .. } = processed else {
        panic!("{processed:?}")
    };
    assert_eq!(error.class(), "unavailable");
    assert!(error.to_string().contains("all 1 connections"), "{error}");
    assert!(store.set_once("a", "count").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_questions_than_connections_queue_up() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.connections = 3;
    settings.timeout = Duration::from_secs(30);
    let store = database.store_with(&settings).await;
    let claims = (0..300).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.claim(&(n / 3).to_string()).await })
    });
    let mut won = 0;
    for claimed in futures_util::future::join_all(claims).await {
        won += usize::from(matches!(claimed.unwrap().unwrap(), ClaimOutcome::Won(_)));
    }
    assert_eq!(won, 100);
    assert!(store.pool().size() <= 3);
}

#[tokio::test]
async fn a_pool_that_is_closed_is_unavailable() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    store.pool().close().await;
    let error = store.seen("a").await.unwrap_err();
    assert_eq!(class(&error), "unavailable", "{error}");
}
