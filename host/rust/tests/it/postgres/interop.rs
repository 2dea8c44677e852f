//! Rows that plain SQL reads and writes: the documented table is all that is
//! between them.

use super::Database;
use babelqueue_guard::settings::Retention;
use babelqueue_guard::store::postgres::PostgresSettings;
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Store};

/// The question of a consumer that knows nothing but the table.
fn plainly_seen(database: &Database, id: &str) -> bool {
    let found = database.sql(&format!(
        "SELECT 1 FROM babelqueue_idempotency WHERE message_id = '{}' \
         AND (expires_at IS NULL OR expires_at > now())",
        id.replace('\'', "''")
    ));
    found == "1"
}

#[tokio::test]
async fn what_it_remembers_plain_sql_sees() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    for id in ["a", "1", " b ", "Ä", "A\u{308}", "😀", "it's", "\\", "$1"] {
        store.remember(id).await.unwrap();
        assert!(plainly_seen(&database, id), "{id:?}");
    }
    assert!(!plainly_seen(&database, "A"));
    let claimed = store.claim("leased").await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Won(_)));
    assert!(!plainly_seen(&database, "leased"), "a lease is no mark");
}

#[tokio::test]
async fn what_plain_sql_remembers_it_sees() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    database.sql(
        "INSERT INTO babelqueue_idempotency (message_id, expires_at) VALUES \
         ('for ever', NULL), ('live', now() + interval '1 minute'), ('infinite', 'infinity'), \
         ('expired', now() - interval '1 second'), ('Ä', NULL)",
    );
    for id in ["for ever", "live", "infinite", "Ä"] {
        assert!(store.seen(id).await.unwrap(), "{id}");
        assert_eq!(store.claim(id).await.unwrap(), ClaimOutcome::Done, "{id}");
        let entries = store.inspect(id).await.unwrap();
        assert_eq!(entries.len(), 1, "{id}");
        assert_eq!(entries[0].left.is_some(), id == "live", "{id}");
        store.forget(id).await.unwrap();
        assert!(!plainly_seen(&database, id), "{id}");
    }
    assert!(!store.seen("expired").await.unwrap());
    let claimed = store.claim("expired").await.unwrap();
    assert!(matches!(claimed, ClaimOutcome::Won(_)));
    store.remember("expired").await.unwrap();
    assert!(plainly_seen(&database, "expired"), "revived");
}

/// As the stores of other languages create it, with their own idea of
/// collation and of the index.
#[tokio::test]
async fn a_table_that_others_have_created_will_do() {
    let Some(database) = Database::empty() else {
        return;
    };
    database.sql(
        "CREATE TABLE babelqueue_idempotency (message_id text NOT NULL PRIMARY KEY, \
         created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NULL); \
         CREATE INDEX babelqueue_idempotency_expires_at_idx \
         ON babelqueue_idempotency (expires_at); \
         INSERT INTO babelqueue_idempotency (message_id) VALUES ('theirs')",
    );
    let store = database.store().await;
    let done = store.migrate().await.unwrap();
    assert!(
        done.ends_with("created babelqueue_lease, babelqueue_once"),
        "{done}"
    );
    assert!(store.seen("theirs").await.unwrap());
    assert_eq!(store.claim("theirs").await.unwrap(), ClaimOutcome::Done);
    store.remember("ours").await.unwrap();
    assert!(plainly_seen(&database, "ours"));
    assert_eq!(store.list(None, 10).await.unwrap().entries.len(), 2);
    let indexes =
        database.sql("SELECT count(*) FROM pg_indexes WHERE tablename = 'babelqueue_idempotency'");
    assert_eq!(indexes, "2", "none was created twice");
}

#[tokio::test]
async fn for_ever_is_null() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.retention = Retention::Forever;
    let store = database.store_with(&settings).await;
    store.remember("a").await.unwrap();
    let rows = database.sql("SELECT message_id, expires_at IS NULL FROM babelqueue_idempotency");
    assert_eq!(rows, "a|t");
}

/// Whatever the session's settings, an id cannot be more than a text.
#[tokio::test]
async fn ids_are_no_sql() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.sql(&format!(
        "ALTER DATABASE {} SET standard_conforming_strings = off",
        database.name
    ));
    let store = database.store().await;
    for id in [
        "'; DROP TABLE babelqueue_idempotency; --",
        "\\'; DROP TABLE babelqueue_idempotency; --",
        "$$; DROP TABLE babelqueue_idempotency; --$$",
        "\\x41",
        "E'a'",
    ] {
        store.remember(id).await.unwrap();
        assert!(store.seen(id).await.unwrap(), "{id}");
        assert_eq!(store.inspect(id).await.unwrap()[0].id, id);
    }
    assert_eq!(
        database.sql("SELECT count(*) FROM babelqueue_idempotency"),
        "5"
    );
    let error = store.remember("a\0b").await.unwrap_err();
    assert_eq!(super::class(&error), "rejected", "{error}");
}
