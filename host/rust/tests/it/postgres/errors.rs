//! Refusals of the server and their classes (contract, section 7).

use super::{Database, class};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Store, StoreError};
use std::process::Command;
use test_servers::Postgres;

async fn refusal(url: &str) -> StoreError {
    match PostgresStore::connect(url, &PostgresSettings::default()).await {
        Err(ConnectError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_may_not_come_in_is_rejected_and_no_password_is_told() {
    let Some(database) = Database::empty() else {
        return;
    };
    database.sql(
        "DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; \
         EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    );
    for (url, code) in [
        (
            database.server.url_as("locked:S3cret", &database.name),
            "28P01",
        ),
        (database.server.url_as("locked", &database.name), "28"),
        (
            database
                .server
                .url_as("nobody_of_that_name:S3cret", &database.name),
            "28000",
        ),
        (
            database
                .server
                .url_as("postgres:S3cret", "no_such_database"),
            "3D000",
        ),
    ] {
        let error = refusal(&url).await;
        let text = format!("{error} {error:?}");
        assert_eq!(class(&error), "rejected", "{text}");
        // Without a password the driver sends an empty one.
        assert!(text.contains(code), "{text}");
        assert!(!text.contains("S3cret"), "{text}");
        assert!(text.contains("127.0.0.1"), "{text}");
    }
    let url = database.server.url_as("locked:right", &database.name);
    PostgresStore::connect(&url, &PostgresSettings::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_listening_is_unavailable() {
    let error = refusal("postgres://name:S3cret@127.0.0.1:1/orders").await;
    assert_eq!(class(&error), "unavailable");
    assert!(error.to_string().contains("127.0.0.1:1/orders"), "{error}");
    assert!(!error.to_string().contains("S3cret"), "{error}");
}

#[tokio::test]
async fn a_missing_privilege_is_rejected() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.sql(
        "DO $$ BEGIN CREATE ROLE reader LOGIN; \
         EXCEPTION WHEN duplicate_object THEN NULL; END $$; \
         GRANT SELECT ON babelqueue_idempotency TO reader",
    );
    let url = database.server.url_as("reader", &database.name);
    let store = PostgresStore::connect(&url, &PostgresSettings::default())
        .await
        .unwrap();
    assert!(!store.seen("a").await.unwrap());
    for error in [
        store.remember("a").await.unwrap_err(),
        store.claim("a").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "rejected");
        let text = error.to_string();
        assert!(text.contains("42501") && text.contains("INSERT"), "{text}");
    }
    store.migrate().await.unwrap();
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_unavailable_and_still_answers() {
    let Some(database) = Database::new().await else {
        return;
    };
    database.store().await.remember("a").await.unwrap();
    database.sql(&format!(
        "ALTER DATABASE {} SET default_transaction_read_only = on",
        database.name
    ));
    let store = database.store().await;
    assert!(store.seen("a").await.unwrap());
    for error in [
        store.remember("b").await.unwrap_err(),
        store.claim("b").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "unavailable");
        assert!(error.to_string().contains("25006"), "{error}");
    }
}

/// What the server says when its disk is full, its memory used up, or a
/// trigger of somebody's refuses.
#[tokio::test]
async fn the_class_of_what_the_server_raises_follows_its_code() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = database.store().await;
    for (code, expected) in [
        ("53100", "unavailable"),
        ("53200", "unavailable"),
        ("57014", "unavailable"),
        ("58030", "unavailable"),
        ("P0001", "rejected"),
        ("23514", "rejected"),
        ("22P05", "rejected"),
    ] {
        database.sql(&format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$; \
             DROP TRIGGER IF EXISTS refuse ON babelqueue_idempotency; \
             CREATE TRIGGER refuse BEFORE INSERT ON babelqueue_idempotency \
             FOR EACH ROW EXECUTE FUNCTION refuse()"
        ));
        let error = store.remember("a").await.unwrap_err();
        assert_eq!(class(&error), expected, "{error}");
        assert!(error.to_string().contains(code), "{error}");
        assert!(!store.seen("a").await.unwrap(), "and nothing is written");
    }
}

#[tokio::test]
async fn an_encoding_that_cannot_hold_every_id_is_refused_by_name() {
    let Some(database) = Database::empty() else {
        return;
    };
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let name = database
            .server
            .create_database(&format!("ENCODING '{encoding}' LOCALE 'C'"));
        let error = refusal(&database.server.url(&name)).await;
        assert_eq!(class(&error), "rejected");
        assert!(error.to_string().contains(encoding), "{error}");
    }
}

#[tokio::test]
async fn the_servers_language_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("localedef")
        .args(["-i", "de_DE", "-f", "UTF-8"])
        .arg(folder.path().join("de_DE.UTF-8"))
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return test_servers::missing("localedef or the locales' sources are not installed")
            .unwrap_or_default();
    }
    world_readable(folder.path());
    let Some(server) = Postgres::start_with(
        &["lc_messages=de_DE.UTF-8"],
        &[("LOCPATH", folder.path().to_str().unwrap())],
    ) else {
        return;
    };
    let store = PostgresStore::connect(&server.url("postgres"), &PostgresSettings::default())
        .await
        .unwrap();
    let error = store.seen("a").await.unwrap_err();
    if error.to_string().contains("does not exist") {
        return test_servers::missing("the server's translations are not installed")
            .unwrap_or_default();
    }
    assert_eq!(class(&error), "rejected");
    assert!(error.to_string().contains("existiert nicht"), "{error}");
    assert!(error.to_string().contains("migrate"), "{error}");

    store.migrate().await.unwrap();
    store.remember("a").await.unwrap();
    store.remember("a").await.unwrap();
    assert_eq!(store.claim("a").await.unwrap(), ClaimOutcome::Done);
    assert!(matches!(
        store.claim("b").await.unwrap(),
        ClaimOutcome::Won(_)
    ));
    assert!(matches!(
        store.claim("b").await.unwrap(),
        ClaimOutcome::Busy(_)
    ));
}

fn world_readable(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
