//! Expired rows are collected beside consumers at work.

use super::Database;
use babelqueue_guard::settings::Retention;
use babelqueue_guard::sqlx::{PgPool, raw_sql};
use babelqueue_guard::store::postgres::PostgresSettings;
use babelqueue_guard::{Inventory, Store};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_is_at_work_on_is_passed_over() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    database.sql(
        "INSERT INTO babelqueue_idempotency (message_id, expires_at) \
         SELECT n, now() - interval '1 hour' FROM generate_series(1, 10) AS n; \
         INSERT INTO babelqueue_lease (message_id, token, expires_at) \
         VALUES ('lapsed', 't', now() - interval '1 hour'), ('live', 't', now() + '1 hour'); \
         INSERT INTO babelqueue_once (message_id, step, expires_at) \
         VALUES ('1', 'a', now() - interval '1 hour'), ('1', 'b', now() - interval '1 hour'), \
         ('2', 'a', NULL)",
    );
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    raw_sql("UPDATE babelqueue_idempotency SET expires_at = NULL WHERE message_id = '7'")
        .execute(&mut *other)
        .await
        .unwrap();
    // It would wait here for ever if it waited.
    assert_eq!(store.collect(4).await.unwrap(), 4);
    assert_eq!(store.collect(100).await.unwrap(), 8);
    assert_eq!(store.collect(100).await.unwrap(), 0);
    other.commit().await.unwrap();
    assert!(store.seen("7").await.unwrap());
    let left = database.sql(
        "SELECT message_id FROM babelqueue_idempotency UNION ALL \
         SELECT message_id FROM babelqueue_lease UNION ALL \
         SELECT message_id || step FROM babelqueue_once",
    );
    assert_eq!(left.lines().collect::<Vec<_>>(), ["7", "live", "2a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revived_meanwhile_is_kept() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.retention = Retention::of(Duration::from_millis(1)).unwrap();
    let brief = database.store_with(&settings).await;
    database.sql(
        "INSERT INTO babelqueue_idempotency (message_id, expires_at) \
         SELECT n, now() - interval '1 hour' FROM generate_series(0, 499) AS n",
    );
    let collectors: Vec<_> = (0..2)
        .map(|_| {
            let brief = brief.clone();
            tokio::spawn(async move { while brief.collect(7).await.unwrap() > 0 {} })
        })
        .collect();
    let store = database.store().await;
    for n in 0..500 {
        store.remember(&n.to_string()).await.unwrap();
    }
    for collector in collectors {
        collector.await.unwrap();
    }
    assert_eq!(
        database.sql("SELECT count(*) FROM babelqueue_idempotency"),
        "500"
    );
}

#[tokio::test]
async fn it_is_found_by_index() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    database.sql(
        "INSERT INTO babelqueue_idempotency (message_id, expires_at) \
         SELECT n, now() + interval '1 hour' FROM generate_series(1, 20000) AS n; \
         ANALYZE babelqueue_idempotency; SELECT pg_stat_reset()",
    );
    for n in 0..5 {
        store.collect(10).await.unwrap();
        store.seen("1").await.unwrap();
        store.remember(&format!("a{n}")).await.unwrap();
        store.list(None, 10).await.unwrap();
    }
    // Statistics are reported when a session ends.
    store.pool().close().await;
    let scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'babelqueue_idempotency'";
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(
        database.sql(scans),
        "0",
        "no question reads the whole table"
    );
}
