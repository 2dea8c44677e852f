//! Files that cannot be written, and pools that cannot work.

use super::{Place, interop};
use babelqueue_guard::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use babelqueue_guard::store::sqlite::{SqliteSettings, SqliteStore};
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Marker, Store, StoreError};
use std::time::Duration;

fn class(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable(_) => "unavailable",
        StoreError::Rejected(_) => "rejected",
    }
}

#[tokio::test]
async fn a_file_that_may_only_be_read_still_answers() {
    let place = Place::new();
    let writer = place.store().await;
    writer.remember("a").await.unwrap();
    let url = format!("{}?mode=ro", place.url());
    let reader = SqliteStore::connect(&url, &SqliteSettings::default())
        .await
        .unwrap();
    assert!(reader.seen("a").await.unwrap());
    assert!(!reader.seen("b").await.unwrap());
    for error in [
        reader.remember("b").await.unwrap_err(),
        reader.forget("a").await.unwrap_err(),
        reader.claim("b").await.unwrap_err(),
        reader.complete("b", "token").await.unwrap_err(),
        reader.set_once("b", "count").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "rejected", "{error}");
        assert!(error.to_string().contains("guard.db"), "{error}");
    }
    assert!(writer.seen("a").await.unwrap(), "nothing was written");
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_loses_nothing() {
    let place = Place::new();
    place.store().await.remember("kept").await.unwrap();
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .pragma("max_page_count", "12");
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    let full = SqliteStore::with_pool(pool, &SqliteSettings::default())
        .await
        .unwrap();
    let id = "x".repeat(2_000);
    let mut written = Vec::new();
    let error = loop {
        let id = format!("{id}{}", written.len());
        match full.remember(&id).await {
            Ok(()) => written.push(id),
            Err(error) => break error,
        }
        assert!(written.len() < 100, "it never gets full");
    };
    assert_eq!(class(&error), "unavailable", "{error}");
    assert!(full.seen("kept").await.unwrap());
    for id in &written {
        assert!(full.seen(id).await.unwrap(), "what was reported is there");
    }
    assert!(!full.seen("never").await.unwrap());
}

#[tokio::test]
async fn a_folder_that_is_not_there_and_a_file_that_is_no_database_are_named() {
    let place = Place::new();
    let nowhere = format!("{}/none/guard.db", place.url());
    std::fs::write(
        place.path(),
        "no database, and long enough to be read as one",
    )
    .unwrap();
    for url in [nowhere, place.url()] {
        let error = SqliteStore::connect(&url, &SqliteSettings::default())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("rejected") && error.contains("guard.db"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_writer_waits_for_another_as_long_as_it_may() {
    let place = Place::new();
    let mut settings = SqliteSettings::default();
    settings.busy_timeout = Duration::from_millis(300);
    let impatient = place.store_with(&settings).await;
    let patient = place.store().await;
    let pool = place.plain().await;

    let writer = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = impatient.claim("a").await.unwrap_err();
    assert_eq!(class(&error), "unavailable", "{error}");
    assert!(!impatient.seen("a").await.unwrap(), "readers do not wait");
    let waiting = tokio::spawn(async move { patient.claim("a").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    writer.rollback().await.unwrap();
    let claimed = waiting.await.unwrap().unwrap();
    assert!(matches!(claimed, ClaimOutcome::Won(_)));
}

#[tokio::test]
async fn several_connections_to_a_database_in_memory_are_refused() {
    for url in ["sqlite::memory:", "sqlite:anything?mode=memory"] {
        let options: SqliteConnectOptions = url.parse().unwrap();
        let pool = async |connections| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .connect_with(options.clone())
                .await
                .unwrap()
        };
        let settings = SqliteSettings::default();
        let error = SqliteStore::with_pool(pool(2).await, &settings)
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with("pool: "), "{error}");

        let one = SqliteStore::with_pool(pool(1).await, &settings)
            .await
            .unwrap();
        one.migrate().await.unwrap();
        one.remember("a").await.unwrap();
        assert!(one.seen("a").await.unwrap());
    }
}

#[tokio::test]
async fn a_handler_that_keeps_the_only_connection_gets_an_error_and_no_deadlock() {
    let place = Place::new();
    place.store().await;
    let options = SqliteConnectOptions::new().filename(place.path());
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_millis(200))
        .connect_with(options)
        .await
        .unwrap();
    let store = SqliteStore::with_pool(pool.clone(), &SqliteSettings::default())
        .await
        .unwrap();
    let transaction = pool.begin().await.unwrap();
    let error = store.set_once("a", "count").await.unwrap_err();
    assert_eq!(class(&error), "unavailable");
    assert!(error.to_string().contains("connection"), "{error}");
    drop(transaction);
    assert!(store.set_once("a", "count").await.unwrap());
}

#[tokio::test]
async fn a_table_of_another_shape_is_rejected() {
    let place = Place::new();
    let pool = place.plain().await;
    for table in ["idempotency", "lease", "once"] {
        interop::run(&pool, &format!("CREATE TABLE babelqueue_{table} (id TEXT)")).await;
    }
    let error = place.store().await.seen("a").await.unwrap_err();
    assert_eq!(class(&error), "rejected", "{error}");
    assert!(!error.to_string().contains("migrate"), "{error}");
}
