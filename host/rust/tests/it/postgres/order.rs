//! Claims, marks and locks that meet (contract, section 3).

use super::{Database, class};
use babelqueue_guard::sqlx::{PgPool, raw_sql};
use babelqueue_guard::store::postgres::PostgresSettings;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Store};
use futures_util::future::join_all;
use std::time::Duration;

/// The mark is committed, and the lease dropped, after the claim has begun and
/// while it waits: a statement that looked first and inserted second would win.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_committed_a_moment_before_the_lease_is_free_is_seen() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let ClaimOutcome::Won(_) = store.claim("a").await.unwrap() else {
        panic!("it is free")
    };
    let mut other = pool.begin().await.unwrap();
    raw_sql("DELETE FROM babelqueue_lease WHERE message_id = 'a'")
        .execute(&mut *other)
        .await
        .unwrap();
    let claim = tokio::spawn({
        let store = store.clone();
        async move { store.claim("a").await }
    });
    until_waiting(&database).await;
    raw_sql("INSERT INTO babelqueue_idempotency (message_id) VALUES ('a')")
        .execute(&mut *other)
        .await
        .unwrap();
    other.commit().await.unwrap();
    assert_eq!(claim.await.unwrap().unwrap(), ClaimOutcome::Done);
    let leases = database.sql("SELECT count(*) FROM babelqueue_lease");
    assert_eq!(leases, "0", "what it took in vain is given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_databases_default_isolation_does_not_matter() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.sql(&format!(
        "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
        database.name
    ));
    let store = database.store().await;
    for n in 0..20 {
        let id = n.to_string();
        let claims = join_all((0..8).map(|_| store.claim(&id))).await;
        let won: Vec<_> = claims
            .into_iter()
            .filter_map(|claim| match claim.unwrap() {
                ClaimOutcome::Won(lease) => Some(lease),
                _ => None,
            })
            .collect();
        assert_eq!(won.len(), 1);
        let (completed, claimed) =
            tokio::join!(store.complete(&id, &won[0].token), store.claim(&id));
        assert_eq!(completed.unwrap(), Hold::Held);
        assert!(!matches!(claimed.unwrap(), ClaimOutcome::Won(_)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_anothers_lock_is_bounded() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.timeout = Duration::from_secs(1);
    let store = database.store_with(&settings).await;
    let pool = PgPool::connect(&database.url()).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    raw_sql("LOCK TABLE babelqueue_lease, babelqueue_idempotency IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *other)
        .await
        .unwrap();
    for error in [
        store.claim("a").await.unwrap_err(),
        store.seen("a").await.unwrap_err(),
        store.remember("a").await.unwrap_err(),
        store.complete("a", "token").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "unavailable");
        assert!(error.to_string().contains("55P03"), "{error}");
    }
    other.rollback().await.unwrap();
    assert!(matches!(
        store.claim("a").await.unwrap(),
        ClaimOutcome::Won(_)
    ));
}

#[tokio::test]
async fn what_others_lost_to_is_asked_again() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    for code in ["40001", "40P01"] {
        // Fails three times, whatever is rolled back.
        database.sql(&format!(
            "DROP TRIGGER IF EXISTS lose ON babelqueue_lease; \
             DROP SEQUENCE IF EXISTS turns; CREATE SEQUENCE turns; \
             CREATE OR REPLACE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('turns') <= 3 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '{code}'; \
             END IF; RETURN new; END $$; \
             CREATE TRIGGER lose BEFORE INSERT ON babelqueue_lease \
             FOR EACH ROW EXECUTE FUNCTION lose()"
        ));
        let claimed = store.claim(code).await.unwrap();
        assert!(matches!(claimed, ClaimOutcome::Won(_)), "{claimed:?}");
        assert_eq!(database.sql("SELECT last_value FROM turns"), "4");

        database.sql("ALTER SEQUENCE turns MINVALUE -100 RESTART WITH -100");
        let error = store.claim("never").await.unwrap_err();
        assert_eq!(class(&error), "unavailable");
        assert!(error.to_string().contains(code), "{error}");
        let turns: i64 = database
            .sql("SELECT last_value FROM turns")
            .parse()
            .unwrap();
        assert_eq!(turns, -94, "it gives up");
    }
}

/// Until somebody waits for a lock in this database.
pub(crate) async fn until_waiting(database: &Database) {
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while database.sql(waiting) == "0" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
