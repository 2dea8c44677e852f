//! Times are the server's, as they pass.

use super::Database;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Marker, Store};

/// Gives a database a clock of its own, in front of the server's, that a test
/// can set. It is another one than this machine's, on which the store runs.
fn give_clock(database: &Database) {
    database.sql(&format!(
        "CREATE SCHEMA apart; CREATE TABLE apart.ahead (by interval); \
         INSERT INTO apart.ahead VALUES ('0'); \
         CREATE FUNCTION apart.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS \
         'SELECT pg_catalog.clock_timestamp() + by FROM apart.ahead'; \
         ALTER DATABASE {} SET search_path = apart, public, pg_catalog",
        database.name
    ));
}

fn set_ahead(database: &Database, by: &str) {
    database.sql(&format!("UPDATE apart.ahead SET by = {by}"));
}

#[tokio::test]
async fn expiry_is_computed_and_compared_on_the_servers_clock() {
    for start in ["0", "-3 hours", "3 hours"] {
        let Some(database) = Database::new().await else {
            return;
        };
        give_clock(&database);
        set_ahead(&database, &format!("interval '{start}'"));
        let store = database.store().await;
        let later = |by: &str| {
            set_ahead(&database, &format!("interval '{start}' + interval '{by}'"));
        };

        store.remember("a").await.unwrap();
        assert!(store.set_once("a", "count").await.unwrap());
        let ClaimOutcome::Won(lease) = store.claim("b").await.unwrap() else {
            panic!("it is free")
        };
        later("59 seconds");
        assert!(matches!(
            store.claim("b").await.unwrap(),
            ClaimOutcome::Busy(1..=1_000)
        ));
        assert_eq!(store.renew("b", &lease.token).await.unwrap(), Hold::Held);
        later("118 seconds");
        assert!(matches!(
            store.claim("b").await.unwrap(),
            ClaimOutcome::Busy(_)
        ));
        later("120 seconds");
        assert_eq!(store.renew("b", &lease.token).await.unwrap(), Hold::Lost);
        assert!(matches!(
            store.claim("b").await.unwrap(),
            ClaimOutcome::Won(_)
        ));
        later("13 days 23 hours");
        assert!(store.seen("a").await.unwrap());
        assert!(!store.set_once("a", "count").await.unwrap());
        later("14 days 1 minute");
        assert!(!store.seen("a").await.unwrap());
        assert!(store.set_once("a", "count").await.unwrap());
    }
}

#[tokio::test]
async fn a_row_tells_the_retention_and_the_servers_time() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.store().await.remember("a").await.unwrap();
    let row = database.sql(
        "SELECT abs(extract(epoch FROM expires_at - created_at - interval '14 days')) < 0.001, \
         clock_timestamp() - created_at BETWEEN interval '0' AND interval '1 minute' \
         FROM babelqueue_idempotency",
    );
    assert_eq!(row, "t|t");
}
