//! The store in a SQLite file.

mod faults;
mod interop;
mod sharing;

use crate::inventory;
use babelqueue_guard::settings::{Consumer, Retention};
use babelqueue_guard::sqlx::SqlitePool;
use babelqueue_guard::sqlx::sqlite::SqliteConnectOptions;
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::suite::{self, SuiteSettings};
use babelqueue_guard::{Inventory, Store, StoreError};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A folder with a database to be.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("guard.db")
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    async fn store(&self) -> SqliteStore {
        self.store_with(&SqliteSettings::default()).await
    }

    async fn store_with(&self, settings: &SqliteSettings) -> SqliteStore {
        SqliteStore::connect(&self.url(), settings).await.unwrap()
    }

    /// Somebody else's connections to the same file.
    async fn plain(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true);
        SqlitePool::connect_with(options).await.unwrap()
    }
}

fn as_in_suite(settings: SuiteSettings) -> SqliteSettings {
    let mut sqlite = SqliteSettings::default();
    sqlite.retention = settings.retention;
    sqlite.lease = settings.lease;
    sqlite
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_stores() {
    let place = Place::new();
    suite::check_store(async |settings| place.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_claims() {
    let place = Place::new();
    suite::check_claims(async |settings| place.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suite_for_steps() {
    let place = Place::new();
    suite::check_steps(async |settings| place.store_with(&as_in_suite(settings)).await).await;
}

#[tokio::test]
async fn in_memory_it_passes_the_suites_too() {
    let make = async |settings| {
        SqliteStore::connect("sqlite::memory:", &as_in_suite(settings))
            .await
            .unwrap()
    };
    suite::check_store(make).await;
    suite::check_claims(make).await;
    suite::check_steps(make).await;
}

#[tokio::test]
async fn an_operator_can_count_list_inspect_and_collect() {
    let mut settings = SqliteSettings::default();
    settings.retention = Retention::of(Duration::from_secs(1)).unwrap();
    inventory::check(&Place::new().store_with(&settings).await).await;
}

#[tokio::test]
async fn a_mark_outlives_the_process_that_set_it() {
    let place = Place::new();
    let store = place.store().await;
    store.remember("a").await.unwrap();
    store.pool().close().await;
    assert!(place.store().await.seen("a").await.unwrap());
}

#[tokio::test]
async fn consumers_and_prefixes_have_tables_of_their_own() {
    let place = Place::new();
    let plain = place.store().await;
    let mut settings = SqliteSettings::default();
    settings.consumer = Some(Consumer::named("mail").unwrap());
    let named = place.store_with(&settings).await;
    named.migrate().await.unwrap();
    settings.prefix = "other_".into();
    let prefixed = place.store_with(&settings).await;
    prefixed.migrate().await.unwrap();

    for store in [&plain, &named, &prefixed] {
        assert!(!store.seen("a").await.unwrap());
        store.remember("a").await.unwrap();
    }
    let pool = place.plain().await;
    for table in [
        "babelqueue_idempotency",
        "babelqueue_idempotency_mail",
        "other_idempotency_mail",
    ] {
        assert_eq!(interop::count(&pool, table).await, 1, "{table}");
    }
}

#[tokio::test]
async fn a_database_of_somebody_elses_is_left_alone_until_it_is_migrated() {
    let place = Place::new();
    let pool = place.plain().await;
    interop::run(&pool, "CREATE TABLE orders (id INTEGER PRIMARY KEY)").await;
    let store = place.store().await;

    let error = store.seen("a").await.unwrap_err();
    let StoreError::Rejected(text) = &error else {
        panic!("{error}")
    };
    assert!(text.contains("babelqueue_idempotency") && text.contains("migrate"));
    assert!(text.contains("guard.db"), "{text}");

    let done = store.migrate().await.unwrap();
    assert!(done.contains("created babelqueue_idempotency"), "{done}");
    assert!(!store.seen("a").await.unwrap());
    let again = store.migrate().await.unwrap();
    assert!(again.contains("all tables are there"), "{again}");
}

#[tokio::test]
async fn a_url_is_all_it_takes() {
    use babelqueue_guard::store::url::{UrlSettings, connect};
    let place = Place::new();
    let mut settings = UrlSettings::default();
    settings.consumer = Some(Consumer::named("mail").unwrap());
    settings.prefix = Some("app_".into());
    let store = connect(&place.url(), &settings).await.unwrap();
    store.remember("a").await.unwrap();
    let pool = place.plain().await;
    assert_eq!(interop::count(&pool, "app_idempotency_mail").await, 1);
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused_by_name() {
    let place = Place::new();
    let refused = async |url: &str, settings: &SqliteSettings, name: &str| {
        let error = SqliteStore::connect(url, settings).await.unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    };
    for timeout in [
        Duration::ZERO,
        Duration::from_micros(500),
        Duration::from_secs(u64::MAX),
    ] {
        let mut settings = SqliteSettings::default();
        settings.busy_timeout = timeout;
        refused(&place.url(), &settings, "busy_timeout: ").await;
    }
    let mut settings = SqliteSettings::default();
    settings.prefix = "a\"b".into();
    refused(&place.url(), &settings, "prefix: ").await;
    for url in ["sqlite:", "sqlite://", "sqlite:?mode=ro"] {
        refused(url, &SqliteSettings::default(), "store: ").await;
    }
    let url = format!("{}?mode=sideways", place.url());
    refused(&url, &SqliteSettings::default(), "store: ").await;
}
