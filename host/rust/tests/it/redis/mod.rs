//! The store on Redis, with real servers.

mod interop;

use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::suite::{self, SuiteSettings};
use test_servers::Redis;

async fn store(redis: &Redis, settings: &RedisSettings) -> RedisStore {
    RedisStore::connect(&redis.url(), settings).await.unwrap()
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
