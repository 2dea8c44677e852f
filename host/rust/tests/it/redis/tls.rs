//! Servers with TLS, with an authority of their own.

use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{Store, StoreError};
use test_servers::{Certificates, Redis, free_port};

fn start(certificates: &Certificates, clients: bool) -> Option<(Redis, u16)> {
    let port = free_port();
    let arguments = certificates.redis_arguments(port, clients);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Some((Redis::start(&arguments)?, port))
}

async fn refused(url: &str) -> StoreError {
    match RedisStore::connect(url, &RedisSettings::default()).await {
        Err(ConnectError::Store(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_if_it_is_named() {
    let certificates = Certificates::new();
    let Some((redis, port)) = start(&certificates, false) else {
        return;
    };
    let ca = certificates.file("ca.pem").display().to_string();
    for scheme in ["rediss", "valkeys"] {
        for host in ["127.0.0.1", "localhost"] {
            let url = format!("{scheme}://{host}:{port}/?ca={ca}");
            let store = RedisStore::connect(&url, &RedisSettings::default())
                .await
                .unwrap();
            store.remember(&format!("{scheme} {host}")).await.unwrap();
        }
    }
    let marks: Vec<String> = redis.command(&["KEYS", "bq:idemp:*"]);
    assert_eq!(marks.len(), 4);

    let error = refused(&format!("rediss://127.0.0.1:{port}")).await;
    assert!(!error.is_retryable(), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    // Plain text on either side only.
    let error = refused(&format!("redis://127.0.0.1:{port}")).await;
    assert!(error.is_retryable(), "{error}");
    let error = refused(&format!("rediss://{}?ca={ca}", redis.address())).await;
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_server_that_wants_a_client_certificate_gets_it() {
    let certificates = Certificates::new();
    let Some((_redis, port)) = start(&certificates, true) else {
        return;
    };
    let file = |name: &str| certificates.file(name).display().to_string();
    let with_ca = format!("rediss://127.0.0.1:{port}/?ca={}", file("ca.pem"));
    let error = refused(&with_ca).await;
    assert!(!error.is_retryable(), "{error}");
    let url = format!(
        "{with_ca}&cert={}&key={}",
        file("client.pem"),
        file("client.key")
    );
    let store = RedisStore::connect(&url, &RedisSettings::default())
        .await
        .unwrap();
    store.remember("a").await.unwrap();
    assert!(store.seen("a").await.unwrap());
}

#[tokio::test]
async fn files_that_are_missing_or_no_certificates_are_named() {
    for (query, expected) in [
        ("ca=/nowhere.pem", "ca=/nowhere.pem"),
        ("cert=/nowhere.pem&key=/nowhere.key", "/nowhere"),
        ("cert=/dev/null", "both"),
    ] {
        let url = format!("rediss://127.0.0.1:1/?{query}");
        let error = RedisStore::connect(&url, &RedisSettings::default())
            .await
            .unwrap_err();
        assert!(matches!(error, ConnectError::Setting(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
