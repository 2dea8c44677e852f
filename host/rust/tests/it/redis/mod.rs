//! The store on Redis, with real servers.

mod cluster;
mod faults;
mod interop;
mod proxy;
mod refusals;
mod replies;
mod sentinel;
#[cfg(feature = "redis-tls")]
mod tls;

use babelqueue_guard::StoreError;
use babelqueue_guard::settings::LeaseLength;
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::suite::{self, SuiteSettings};
use std::time::Duration;
use test_servers::Redis;

async fn store(redis: &Redis, settings: &RedisSettings) -> RedisStore {
    RedisStore::connect(&redis.url(), settings).await.unwrap()
}

#[track_caller]
fn rejected<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Rejected(text)) => text,
        other => panic!("not rejected: {other:?}"),
    }
}

/// For servers that hang: as usual, but with less patience.
fn impatient() -> RedisSettings {
    let mut settings = RedisSettings::default();
    settings.connect_timeout = Duration::from_secs(1);
    settings.response_timeout = Duration::from_secs(1);
    settings.lease = LeaseLength::of(Duration::from_secs(2)).unwrap();
    settings
}

fn as_in_suite(settings: SuiteSettings) -> RedisSettings {
    let mut redis = RedisSettings::default();
    redis.retention = settings.retention;
    redis.lease = settings.lease;
    redis
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_suites() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let make = async |settings| store(&redis, &as_in_suite(settings)).await;
    suite::check_store(make).await;
    suite::check_claims(make).await;
    suite::check_steps(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_passes_the_suites() {
    let Some(valkey) = test_servers::valkey() else {
        return;
    };
    let url = format!("valkey://{}", valkey.address());
    let make = async |settings| {
        let settings = as_in_suite(settings);
        RedisStore::connect(&url, &settings).await.unwrap()
    };
    suite::check_store(make).await;
    suite::check_claims(make).await;
    suite::check_steps(make).await;
}
