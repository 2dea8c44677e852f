//! The store in PostgreSQL.

mod clocks;
mod collection;
mod connections;
mod errors;
mod faults;
mod interop;
pub(crate) mod order;
mod pooler;
mod reach;

use crate::inventory;
use babelqueue_guard::settings::{Consumer, LeaseLength, Retention};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::store::url::{UrlSettings, connect};
use babelqueue_guard::suite::{self, SuiteSettings};
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Store, StoreError};
use std::sync::OnceLock;
use std::time::Duration;
use test_servers::Postgres;

/// A database that no other test uses, on a server that all share.
pub(crate) struct Database {
    pub(crate) server: &'static Postgres,
    pub(crate) name: String,
}

impl Database {
    /// With the guard's tables.
    pub(crate) async fn new() -> Option<Self> {
        let database = Self::empty()?;
        database.store().await.migrate().await.unwrap();
        Some(database)
    }

    pub(crate) fn empty() -> Option<Self> {
        static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
        let server = SERVER.get_or_init(test_servers::postgres).as_ref();
        let server = server.or_else(|| test_servers::missing("postgres is not installed"))?;
        let name = server.create_database("");
        Some(Self { server, name })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url(&self.name)
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        self.store_with(&PostgresSettings::default()).await
    }

    pub(crate) async fn store_with(&self, settings: &PostgresSettings) -> PostgresStore {
        PostgresStore::connect(&self.url(), settings).await.unwrap()
    }

    /// Runs SQL as a client that knows nothing of us.
    pub(crate) fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }
}

pub(crate) fn class(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable(_) => "unavailable",
        StoreError::Rejected(_) => "rejected",
    }
}

fn as_in_suite(settings: SuiteSettings) -> PostgresSettings {
    let mut postgres = PostgresSettings::default();
    postgres.retention = settings.retention;
    postgres.lease = settings.lease;
    postgres
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_stores() {
    let Some(database) = Database::new().await else {
        return;
    };
    suite::check_store(async |settings| database.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_claims() {
    let Some(database) = Database::new().await else {
        return;
    };
    suite::check_claims(async |settings| database.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_steps() {
    let Some(database) = Database::new().await else {
        return;
    };
    suite::check_steps(async |settings| database.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test]
async fn an_operator_can_count_list_inspect_and_collect() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.retention = Retention::of(Duration::from_secs(1)).unwrap();
    inventory::check(&database.store_with(&settings).await).await;
}

#[tokio::test]
async fn a_missing_table_is_rejected_until_it_is_migrated() {
    let Some(database) = Database::empty() else {
        return;
    };
    let store = database.store().await;
    for error in [
        store.seen("a").await.unwrap_err(),
        store.claim("a").await.unwrap_err(),
        store.collect(1).await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "rejected", "{error}");
        let text = error.to_string();
        assert!(
            text.contains("migrate") && text.contains(&database.name),
            "{text}"
        );
    }
    let done = store.migrate().await.unwrap();
    assert!(done.contains("created babelqueue_idempotency"), "{done}");
    assert!(!store.seen("a").await.unwrap());
    let again = store.migrate().await.unwrap();
    assert!(again.contains("all tables are there"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_that_migrate_at_once_none_fails() {
    let Some(database) = Database::empty() else {
        return;
    };
    let store = database.store().await;
    let migrations = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.migrate().await })
    });
    for migrated in futures_util::future::join_all(migrations).await {
        migrated.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_has_our_tables_name_and_is_none_is_left_alone() {
    let Some(database) = Database::empty() else {
        return;
    };
    database.sql("CREATE SEQUENCE babelqueue_lease");
    let error = database.store().await.migrate().await.unwrap_err();
    assert_eq!(class(&error), "rejected");
    assert!(error.to_string().contains("babelqueue_lease"), "{error}");
    let created = database.sql("SELECT to_regclass('babelqueue_idempotency')");
    assert_eq!(created, "", "nothing else was created");
}

#[tokio::test]
async fn the_longest_consumers_have_tables_of_their_own() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut stores = vec![database.store().await];
    for name in ["n".repeat(23) + "a", "n".repeat(23) + "b", "n".repeat(23)] {
        let mut settings = PostgresSettings::default();
        settings.consumer = Some(Consumer::named(name).unwrap());
        let store = database.store_with(&settings).await;
        store.migrate().await.unwrap();
        stores.push(store);
    }
    for store in &stores {
        assert!(!store.seen("a").await.unwrap());
        assert!(matches!(
            store.claim("a").await.unwrap(),
            ClaimOutcome::Won(_)
        ));
        store.remember("a").await.unwrap();
    }
    // Tables, and indexes too: none was taken for another's.
    let relations = database.sql(
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'babelqueue_%' AND relkind IN ('r', 'i')",
    );
    assert_eq!(relations, (4 * (3 + 3 + 2)).to_string());
}

#[tokio::test]
async fn a_url_is_all_it_takes() {
    let Some(database) = Database::empty() else {
        return;
    };
    let mut settings = UrlSettings::default();
    settings.consumer = Some(Consumer::named("mail").unwrap());
    settings.prefix = Some("app_".into());
    settings.lease = LeaseLength::of(Duration::from_secs(7)).unwrap();
    for url in [
        database.url(),
        database.url().replace("postgres://", "postgresql://"),
    ] {
        let store = connect(&url, &settings).await.unwrap();
        store.migrate().await.unwrap();
        store.remember(&url).await.unwrap();
        match store.claim("a").await.unwrap() {
            ClaimOutcome::Won(lease) => {
                assert_eq!(lease.length_ms, 7_000);
                store.release("a", &lease.token).await.unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        database.sql("SELECT count(*) FROM app_idempotency_mail"),
        "2"
    );
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused_by_name() {
    // Before anything is sent: nobody listens there.
    let url = "postgres://127.0.0.1:1/none";
    let refused = async |url: &str, settings: &PostgresSettings, name: &str| {
        let error = PostgresStore::connect(url, settings).await.unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    };
    for timeout in [
        Duration::ZERO,
        Duration::from_micros(500),
        Duration::from_secs(u64::MAX),
    ] {
        let mut settings = PostgresSettings::default();
        settings.timeout = timeout;
        refused(url, &settings, "timeout: ").await;
    }
    let mut settings = PostgresSettings::default();
    settings.connections = 0;
    refused(url, &settings, "connections: ").await;
    let mut settings = PostgresSettings::default();
    settings.prefix = "a-b".into();
    refused(url, &settings, "prefix: ").await;
    settings.prefix = "p".repeat(60);
    refused(url, &settings, "prefix: ").await;
    for url in [
        "postgres://n:S3cret@h:notaport/d",
        "postgres://n:S3cret@h/d?sslmode=sideways",
    ] {
        let error = PostgresStore::connect(url, &PostgresSettings::default())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("store: "), "{error}");
        assert!(!error.contains("S3cret"), "{error}");
    }
}
