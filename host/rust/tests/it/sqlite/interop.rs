//! Rows that plain SQL reads and writes: the documented table is all that is
//! between them.

use super::Place;
use babelqueue_guard::settings::Retention;
use babelqueue_guard::sqlx::{AssertSqlSafe, SqlitePool, query, query_as, query_scalar, raw_sql};
use babelqueue_guard::store::sqlite::SqliteSettings;
use babelqueue_guard::{ClaimOutcome, Claims, Store};

pub(super) async fn run(pool: &SqlitePool, sql: &str) {
    raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .unwrap();
}

pub(super) async fn count(pool: &SqlitePool, table: &str) -> i64 {
    query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
        .fetch_one(pool)
        .await
        .unwrap()
}

/// The question of a consumer that knows nothing but the table.
async fn plainly_seen(pool: &SqlitePool, id: &str) -> bool {
    let found: Option<i64> = query_scalar(
        "SELECT 1 FROM babelqueue_idempotency WHERE message_id = ? AND (expires_at IS NULL \
         OR expires_at > CAST(strftime('%s', 'now') AS INTEGER) * 1000)",
    )
    .bind(id)
    .fetch_optional(pool)
    .await
    .unwrap();
    found.is_some()
}

async fn plainly_remember(pool: &SqlitePool, id: &str, expires_at: Option<i64>) {
    query("INSERT INTO babelqueue_idempotency (message_id, expires_at) VALUES (?, ?)")
        .bind(id)
        .bind(expires_at)
        .execute(pool)
        .await
        .unwrap();
}

async fn now(pool: &SqlitePool) -> i64 {
    query_scalar("SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000")
        .fetch_one(pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn what_it_remembers_plain_sql_sees() {
    let place = Place::new();
    let store = place.store().await;
    let pool = place.plain().await;
    for id in ["a", "1", "00", " b ", "Ä", "😀"] {
        store.remember(id).await.unwrap();
        assert!(plainly_seen(&pool, id).await, "{id:?}");
    }
    let (created, expires): (i64, i64) = query_as(
        "SELECT created_at, expires_at FROM babelqueue_idempotency WHERE message_id = 'a'",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    assert_eq!(expires - created, 14 * 24 * 60 * 60 * 1_000);
    assert!((now(&pool).await - created).abs() < 60_000, "{created}");

    let claimed = store.claim("leased").await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Won(_)));
    assert!(!plainly_seen(&pool, "leased").await, "a lease is no mark");
}

#[tokio::test]
async fn what_plain_sql_remembers_it_sees() {
    let place = Place::new();
    let store = place.store().await;
    let pool = place.plain().await;
    let now = now(&pool).await;
    plainly_remember(&pool, "for ever", None).await;
    plainly_remember(&pool, "live", Some(now + 60_000)).await;
    plainly_remember(&pool, "expired", Some(now - 1_000)).await;

    for id in ["for ever", "live"] {
        assert!(store.seen(id).await.unwrap(), "{id}");
        assert_eq!(store.claim(id).await.unwrap(), ClaimOutcome::Done, "{id}");
        store.forget(id).await.unwrap();
        assert!(!plainly_seen(&pool, id).await, "{id}");
    }
    assert!(!store.seen("expired").await.unwrap());
    let claimed = store.claim("expired").await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Won(_)));
    store.remember("expired").await.unwrap();
    assert!(plainly_seen(&pool, "expired").await, "revived");
}

#[tokio::test]
async fn for_ever_is_null() {
    let place = Place::new();
    let mut settings = SqliteSettings::default();
    settings.retention = Retention::Forever;
    let store = place.store_with(&settings).await;
    store.remember("a").await.unwrap();
    let expires: Option<i64> = query_scalar("SELECT expires_at FROM babelqueue_idempotency")
        .fetch_one(&place.plain().await)
        .await
        .unwrap();
    assert_eq!(expires, None);
    assert!(store.seen("a").await.unwrap());
}
