//! A primary that dies under Sentinel's eyes.

use super::faults::arrived;
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Store};
use futures_util::future::join_all;
use std::time::Duration;
use test_servers::RedisSentinel;
use test_servers::redis_sentinel::NAME;
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_store_finds_the_new_primary() {
    let Some(mut sentinel) = RedisSentinel::start(&[]) else {
        return;
    };
    let url = format!("redis+sentinel://{}/{NAME}", sentinel.address());
    let store = loop {
        // The client gives a Sentinel on a busy machine half a second.
        match RedisStore::connect(&url, &RedisSettings::default()).await {
            Ok(store) => break store,
            Err(ConnectError::Store(error)) => assert!(error.is_retryable(), "{error}"),
            Err(other) => panic!("{other}"),
        }
    };
    store.remember("before").await.unwrap();
    arrived(&sentinel.servers[1], "bq:idemp:before").await;

    // Writers in flight, each of which tries again until it succeeds.
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut failures = 0;
            for n in 0..200 {
                while let Err(error) = store.remember(&format!("{writer}-{n}")).await {
                    assert!(error.is_retryable(), "{error}");
                    failures += 1;
                    sleep(Duration::from_millis(50)).await;
                }
                sleep(Duration::from_millis(5)).await;
            }
            failures
        })
    });
    let writers: Vec<_> = writers.collect();
    sleep(Duration::from_millis(100)).await;
    sentinel.servers[0].kill();
    let failures: usize = join_all(writers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert!(failures > 0, "the failover was not noticed");

    assert!(store.seen("before").await.unwrap());
    let ClaimOutcome::Won(lease) = store.claim("after").await.unwrap() else {
        panic!("not won");
    };
    assert_eq!(
        store.complete("after", &lease.token).await.unwrap(),
        Hold::Held
    );
    let mark: Option<String> = sentinel.servers[1].command(&["GET", "bq:idemp:after"]);
    assert_eq!(mark.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_an_error_that_says_so() {
    let Some(sentinel) = RedisSentinel::start(&[]) else {
        return;
    };
    let url = format!("redis+sentinel://{}/nobody", sentinel.address());
    let error = RedisStore::connect(&url, &RedisSettings::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("nobody"), "{error}");
}
