//! A server that goes away, hangs, or comes back.

use super::class;
use babelqueue_guard::settings::LeaseLength;
use babelqueue_guard::store::postgres::{PostgresSettings, PostgresStore};
use babelqueue_guard::{ClaimOutcome, Claims, Inventory, Marker, Store};
use std::time::Duration;
use test_servers::Postgres;

async fn store(server: &Postgres, settings: &PostgresSettings) -> PostgresStore {
    let url = server.url("postgres");
    let store = PostgresStore::connect(&url, settings).await.unwrap();
    store.migrate().await.unwrap();
    store
}

fn brief() -> PostgresSettings {
    let mut settings = PostgresSettings::default();
    settings.timeout = Duration::from_secs(1);
    settings
}

/// Uses several connections at once, so that the pool keeps them all.
async fn warm(store: &PostgresStore) {
    let claims = (0..10).map(|n| store.remember(if n % 2 == 0 { "even" } else { "odd" }));
    for claim in futures_util::future::join_all(claims).await {
        claim.unwrap();
    }
    assert!(store.pool().size() > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_first_question_is_answered() {
    let Some(mut server) = test_servers::postgres() else {
        return;
    };
    let store = store(&server, &PostgresSettings::default()).await;
    for crash in [false, true] {
        warm(&store).await;
        store.remember("a").await.unwrap();
        if crash {
            server.kill();
        }
        server.restart();
        assert!(store.seen("a").await.unwrap());
        warm(&store).await;
        if crash {
            server.kill();
        }
        server.restart();
        // Asked once, and so on a connection that is known to be good.
        assert!(
            store
                .set_once("a", &format!("crash_{}", u8::from(crash)))
                .await
                .unwrap()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_away_it_is_unavailable() {
    let Some(mut server) = test_servers::postgres() else {
        return;
    };
    let store = store(&server, &brief()).await;
    store.remember("a").await.unwrap();
    server.terminate();
    for error in [
        store.seen("a").await.unwrap_err(),
        store.claim("b").await.unwrap_err(),
        store.set_once("b", "count").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "unavailable");
        assert!(error.to_string().contains("not connected"), "{error}");
    }
    server.restart();
    assert!(store.seen("a").await.unwrap());
    assert!(matches!(
        store.claim("b").await.unwrap(),
        ClaimOutcome::Won(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_hangs_no_question_does() {
    let Some(server) = test_servers::postgres() else {
        return;
    };
    let mut settings = brief();
    settings.lease = LeaseLength::of(Duration::from_secs(2)).unwrap();
    let store = store(&server, &settings).await;
    warm(&store).await;
    server.pause();
    for error in [
        store.seen("even").await.unwrap_err(),
        store.claim("a").await.unwrap_err(),
        store.remember("b").await.unwrap_err(),
        store.set_once("b", "count").await.unwrap_err(),
    ] {
        assert_eq!(class(&error), "unavailable", "{error}");
    }
    server.resume();
    assert!(store.seen("even").await.unwrap());
    // The server may have got the claim after all: then its lease lapses.
    loop {
        match store.claim("a").await.unwrap() {
            ClaimOutcome::Won(_) => break,
            ClaimOutcome::Busy(left) => tokio::time::sleep(Duration::from_millis(left)).await,
            ClaimOutcome::Done => panic!("nobody marked it"),
        }
    }
}

/// As the server sees it, and without a word to the client.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_ended_do_not_matter() {
    let Some(server) = test_servers::postgres() else {
        return;
    };
    let store = store(&server, &PostgresSettings::default()).await;
    for n in 0..5 {
        warm(&store).await;
        server.sql(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE application_name = 'babelqueue-guard'",
        );
        let id = format!("a{n}");
        assert!(matches!(
            store.claim(&id).await.unwrap(),
            ClaimOutcome::Won(_)
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_dropped_half_way_leaves_no_answer_behind() {
    let Some(server) = test_servers::postgres() else {
        return;
    };
    let mut settings = PostgresSettings::default();
    settings.connections = 2;
    let store = store(&server, &settings).await;
    store.remember("marked").await.unwrap();
    for n in 0..200_u64 {
        let dropped = tokio::time::timeout(
            Duration::from_micros(n * 20),
            futures_util::future::join(store.seen("marked"), store.seen("nobody")),
        );
        let _ = dropped.await;
        assert!(!store.seen("nobody").await.unwrap());
        assert!(store.seen("marked").await.unwrap());
    }
}
