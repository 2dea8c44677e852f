//! Behind pgbouncer in transaction mode, where each transaction may meet
//! another server process.

use super::{Database, as_in_suite};
use babelqueue_guard::sqlx::postgres::PgConnectOptions;
use babelqueue_guard::sqlx::{ConnectOptions, Row, raw_sql};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Store, suite};
use test_servers::Pgbouncer;

/// Fewer connections to the server than the store has to the pooler.
fn pooler(database: &Database) -> Option<Pgbouncer> {
    Pgbouncer::start(database.server, 2, "")
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suites() {
    let Some(database) = Database::empty() else {
        return;
    };
    let Some(pooler) = pooler(&database) else {
        return;
    };
    let url = pooler.url(&database.name);
    let make = async |settings| {
        PostgresStore::connect(&url, &as_in_suite(settings))
            .await
            .unwrap()
    };
    make(suite::SuiteSettings::default())
        .await
        .migrate()
        .await
        .unwrap();
    suite::check_store(make).await;
    suite::check_claims(make).await;
    suite::check_steps(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_nothing_behind_in_a_session() {
    let Some(database) = Database::new().await else {
        return;
    };
    let Some(pooler) = pooler(&database) else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.connections = 20;
    let store = PostgresStore::connect(&pooler.url(&database.name), &settings)
        .await
        .unwrap();
    let claims = (0..200).map(|n| {
        let store = store.clone();
        tokio::spawn(async move { store.claim(&(n / 2).to_string()).await })
    });
    let mut won = 0;
    for claimed in futures_util::future::join_all(claims).await {
        won += usize::from(matches!(claimed.unwrap().unwrap(), ClaimOutcome::Won(_)));
    }
    assert_eq!(won, 100);
    let sessions: i64 = database
        .sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        .parse()
        .unwrap();
    assert!(sessions <= 3, "the pooler's two, and this one");

    // Somebody else who gets one of these sessions.
    let options: PgConnectOptions = pooler.url(&database.name).parse().unwrap();
    let mut other = options.extra_float_digits(None).connect().await.unwrap();
    for _ in 0..10 {
        let rows = raw_sql(
            "SELECT (SELECT count(*) FROM pg_prepared_statements), \
             current_setting('lock_timeout')",
        )
        .fetch_all(&mut other)
        .await
        .unwrap();
        assert_eq!(rows[0].get::<i64, _>(0), 0);
        assert_eq!(rows[0].get::<String, _>(1), "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_or_refusal_does_not_spoil_a_session() {
    let Some(database) = Database::empty() else {
        return;
    };
    let Some(pooler) = Pgbouncer::start(database.server, 1, "") else {
        return;
    };
    let store = PostgresStore::connect(&pooler.url(&database.name), &PostgresSettings::default())
        .await
        .unwrap();
    for _ in 0..5 {
        store.claim("a").await.unwrap_err();
    }
    store.migrate().await.unwrap();
    assert!(!store.seen("a").await.unwrap());
    assert!(matches!(
        store.claim("a").await.unwrap(),
        ClaimOutcome::Won(_)
    ));
}
