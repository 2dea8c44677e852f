//! Ways to the server: TLS, and a socket.

use super::{Database, class};
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{Inventory, Store};
use test_servers::{Certificates, Postgres};

async fn connect(url: &str) -> Result<PostgresStore, ConnectError> {
    PostgresStore::connect(url, &PostgresSettings::default()).await
}

#[tokio::test]
async fn a_socket_is_a_folder() {
    let Some(database) = Database::new().await else {
        return;
    };
    let url = format!(
        "postgres:///{}?host={}&port={}&user=postgres",
        database.name,
        database.server.folder().display(),
        database.server.port()
    );
    let store = connect(&url).await.unwrap();
    store.remember("a").await.unwrap();
    assert!(database.store().await.seen("a").await.unwrap());
}

#[tokio::test]
async fn tls_with_an_authority_and_a_client_certificate_of_ones_own() {
    let certificates = Certificates::new();
    let Some(server) = Postgres::start_tls(&certificates) else {
        return;
    };
    server.sql("postgres", "CREATE ROLE certified LOGIN SUPERUSER");
    let file = |name: &str| certificates.file(name).display().to_string();
    let verified = format!("sslmode=verify-full&sslrootcert={}", file("ca.pem"));

    let url = format!("{}?{verified}", server.url("postgres"));
    let store = connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    store.remember("a").await.unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'babelqueue-guard'";
    assert_eq!(server.sql("postgres", encrypted), "t");

    let certified = server.url_as("certified", "postgres");
    let client = format!(
        "sslcert={}&sslkey={}",
        file("client.pem"),
        file("client.key")
    );
    let store = connect(&format!("{certified}?{verified}&{client}"))
        .await
        .unwrap();
    assert!(store.seen("a").await.unwrap());

    // Without the certificate, without TLS, and with an authority that has
    // nothing to do with the server.
    let other = Certificates::new();
    let stranger = format!(
        "sslmode=verify-full&sslrootcert={}",
        other.file("ca.pem").display()
    );
    for url in [
        format!("{certified}?{verified}"),
        format!("{certified}?sslmode=disable"),
        format!("{}?{stranger}", server.url("postgres")),
        format!(
            "{}?sslmode=verify-full&sslrootcert=/none",
            server.url("postgres")
        ),
    ] {
        match connect(&url).await {
            Err(ConnectError::Store(error)) => assert_eq!(class(&error), "rejected", "{error}"),
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_in_the_clear() {
    let Some(database) = Database::empty() else {
        return;
    };
    let error = connect(&format!("{}?sslmode=require", database.url()))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Store(_)), "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
}
