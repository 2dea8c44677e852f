//! Servers that die, hang, load, fail over, and come back.

use super::proxy::Proxy;
use super::{impatient, store};
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::store::url::ConnectError;
use babelqueue_guard::{
    ClaimOutcome, Claims, Guard, Hold, Mark, Marker, Processed, Store, StoreError,
};
use futures_util::future::join_all;
use std::convert::Infallible;
use std::time::Duration;
use test_servers::Redis;
use tokio::time::sleep;

#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unavailable(text)) => text,
        other => panic!("not unavailable: {other:?}"),
    }
}

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[tokio::test]
async fn a_server_that_is_down_is_unavailable_and_named() {
    let Some(mut redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    store.claim("warm").await.unwrap();
    redis.kill();
    let texts = [
        unavailable(store.seen("a").await),
        unavailable(store.remember("a").await),
        unavailable(store.forget("a").await),
        unavailable(store.claim("a").await),
        unavailable(store.renew("a", "token").await),
        unavailable(store.complete("a", "token").await),
        unavailable(store.release("a", "token").await),
        unavailable(store.set_once("a", "count").await),
    ];
    for text in texts {
        assert!(text.contains(&redis.address()), "{text}");
    }
    let connected = RedisStore::connect(&redis.url(), &RedisSettings::default()).await;
    assert!(matches!(
        connected,
        Err(ConnectError::Store(StoreError::Unavailable(_)))
    ));
}

#[tokio::test]
async fn a_restart_is_not_noticed_by_an_idle_store() {
    let Some(mut redis) = Redis::start(&DURABLE) else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    store.remember("a").await.unwrap();
    let ClaimOutcome::Won(lease) = store.claim("b").await.unwrap() else {
        panic!("not won");
    };
    redis.restart();
    assert!(store.seen("a").await.unwrap());
    redis.kill();
    redis.restart();
    assert!(matches!(
        store.claim("b").await.unwrap(),
        ClaimOutcome::Busy(_)
    ));
    redis.restart();
    assert_eq!(store.renew("b", &lease.token).await.unwrap(), Hold::Held);
    redis.restart();
    assert_eq!(store.complete("b", &lease.token).await.unwrap(), Hold::Held);
    redis.restart();
    assert!(store.seen("b").await.unwrap());
}

#[tokio::test]
async fn the_first_request_after_an_outage_succeeds() {
    let Some(mut redis) = Redis::start(&DURABLE) else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    for _ in 0..3 {
        redis.kill();
        for _ in 0..3 {
            unavailable(store.seen("a").await);
        }
        redis.restart();
        // No error of an earlier attempt to connect is left over.
        assert!(!store.seen("a").await.unwrap());
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_unavailable_and_then_goes_on() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &impatient()).await;
    store.remember("a").await.unwrap();
    store.claim("warm").await.unwrap();
    redis.pause();
    // All of them end, the first on the old connection, the others waiting for
    // a new one.
    unavailable(store.seen("a").await);
    unavailable(store.claim("b").await);
    unavailable(store.set_once("a", "count").await);
    for result in join_all((0..100).map(|_| store.seen("a"))).await {
        unavailable(result);
    }
    redis.resume();
    assert!(store.seen("a").await.unwrap());
    // What was sent to it may have been done: the lease is given back or
    // lapses, and is never taken for somebody else's for ever.
    loop {
        match store.claim("b").await.unwrap() {
            ClaimOutcome::Won(_) => break,
            ClaimOutcome::Busy(left) => sleep(Duration::from_millis(left)).await,
            ClaimOutcome::Done => panic!("nobody marked it"),
        }
    }
}

#[tokio::test]
async fn a_handler_does_not_run_and_a_mark_is_not_lost_silently() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let guard = Guard::new(store(&redis, &impatient()).await).unwrap();
    let body = br#"{"meta":{"id":"a"}}"#;
    redis.pause();
    let handler = async |_context| -> Result<(), Infallible> { panic!("it ran") };
    let error = guard.process(&body[..], handler).await.unwrap_err();
    assert_eq!(error.class(), "unavailable");
    redis.resume();
    let redis = &redis;
    let stop = async |_context| {
        redis.pause();
        Ok::<_, Infallible>(())
    };
    let ran = guard.process(&body[..], stop).await.unwrap();
    let Processed::Ran { mark, .. } = ran else {
        panic!("{ran:?}");
    };
    let Mark::Missing(error) = mark else {
        panic!("{mark:?}");
    };
    assert_eq!(error.class(), "unavailable");
    redis.resume();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_it_keeps_what_it_has_confirmed() {
    let Some(mut redis) = Redis::start(&DURABLE) else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    let writers = (0..16).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut confirmed = Vec::new();
            for n in 0.. {
                let id = format!("{writer}-{n}");
                match store.remember(&id).await {
                    Ok(()) => confirmed.push(id),
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        break;
                    }
                }
            }
            confirmed
        })
    });
    let writers: Vec<_> = writers.collect();
    sleep(Duration::from_millis(300)).await;
    redis.kill();
    let confirmed = join_all(writers).await;
    redis.restart();
    let confirmed: Vec<String> = confirmed.into_iter().flat_map(Result::unwrap).collect();
    assert!(!confirmed.is_empty());
    for id in confirmed {
        assert!(store.seen(&id).await.unwrap(), "{id}");
    }
}

#[tokio::test]
async fn a_server_that_loads_is_unavailable_until_it_is_ready() {
    // Half a millisecond a key.
    let slow = [
        "--key-load-delay",
        "500",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    let Some(mut redis) = Redis::start(&slow) else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    store.remember("a").await.unwrap();
    let fill = "for n = 1, 4000 do redis.call('SET', 'filler-' .. n, 1) end";
    let () = redis.command(&["EVAL", fill, "0"]);
    let () = redis.command(&["SAVE"]);
    redis.restart_without_waiting();
    let mut loading = 0;
    loop {
        match store.seen("a").await {
            Ok(seen) => {
                assert!(seen, "what is loading is not what is absent");
                break;
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                loading += usize::from(error.to_string().contains("LOADING"));
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    assert!(loading > 0, "it was never seen loading");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_next_write_reaches_the_new_primary() {
    let (Some(old), Some(new)) = (test_servers::redis(), test_servers::redis()) else {
        return;
    };
    follow(&new, &old).await;
    let proxy = Proxy::to(old.address()).await;
    let store = RedisStore::connect(&proxy.url(), &RedisSettings::default())
        .await
        .unwrap();
    store.claim("warm").await.unwrap();

    // Writers in flight all the while.
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut readonly = 0;
                for n in 0..2_000 {
                    if let Err(error) = store.remember(&format!("{writer}-{n}")).await {
                        assert!(error.is_retryable(), "{error}");
                        readonly += usize::from(error.to_string().contains("READONLY"));
                    }
                }
                readonly
            })
        })
        .collect();
    sleep(Duration::from_millis(50)).await;
    let () = new.command(&["REPLICAOF", "NO", "ONE"]);
    let () = old.command(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
    // Still connected to the old one: reads work, writes do not.
    while !unavailable_or_done(store.remember("a").await) {
        sleep(Duration::from_millis(1)).await;
    }
    proxy.lead_to(new.address());
    loop {
        // At most one more, from before the address moved.
        match store.remember("b").await {
            Ok(()) => break,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    let found: i64 = new.command(&["EXISTS", "bq:idemp:b"]);
    assert_eq!(found, 1);
    let readonly: usize = join_all(writers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert!(readonly > 0, "no writer met the old primary");
    let ClaimOutcome::Won(lease) = store.claim("c").await.unwrap() else {
        panic!("not won");
    };
    store.complete("c", &lease.token).await.unwrap();
}

fn unavailable_or_done(result: Result<(), StoreError>) -> bool {
    match result {
        Ok(()) => false,
        Err(error) => {
            assert!(error.to_string().contains("READONLY"), "{error}");
            assert!(error.is_retryable(), "{error}");
            true
        }
    }
}

#[tokio::test]
async fn on_a_replica_reads_answer_and_writes_are_unavailable() {
    let (Some(primary), Some(replica)) = (test_servers::redis(), test_servers::redis()) else {
        return;
    };
    follow(&replica, &primary).await;
    store(&primary, &RedisSettings::default())
        .await
        .remember("a")
        .await
        .unwrap();
    arrived(&replica, "bq:idemp:a").await;
    let store = store(&replica, &RedisSettings::default()).await;
    assert!(store.seen("a").await.unwrap());
    let texts = [
        unavailable(store.remember("b").await),
        unavailable(store.forget("a").await),
        unavailable(store.claim("b").await),
        unavailable(store.complete("b", "token").await),
        unavailable(store.set_once("b", "count").await),
    ];
    for text in texts {
        assert!(text.contains("READONLY"), "{text}");
    }
    assert!(store.seen("a").await.unwrap());
    assert!(!store.seen("b").await.unwrap());
}

async fn follow(replica: &Redis, primary: &Redis) {
    let () = replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    while !replica
        .command::<String>(&["INFO", "replication"])
        .contains("master_link_status:up")
    {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a replica has a key.
pub(super) async fn arrived(replica: &Redis, key: &str) {
    while replica.command::<i64>(&["EXISTS", key]) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn out_of_memory_is_unavailable() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    store.claim("warm").await.unwrap();
    let () = redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(unavailable(store.remember("a").await).contains("OOM"));
    assert!(unavailable(store.claim("a").await).contains("OOM"));
    assert!(unavailable(store.set_once("a", "count").await).contains("OOM"));
    assert!(!store.seen("a").await.unwrap());
    let () = redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    store.remember("a").await.unwrap();
}

#[tokio::test]
async fn a_server_busy_with_a_script_is_unavailable() {
    let Some(redis) = Redis::start(&["--lua-time-limit", "50"]) else {
        return;
    };
    let store = store(&redis, &RedisSettings::default()).await;
    let address = redis.url();
    let endless = std::thread::spawn(move || {
        let client = babelqueue_guard::redis::Client::open(address).unwrap();
        babelqueue_guard::redis::cmd("EVAL")
            .arg("while true do end")
            .arg(0)
            .query::<()>(&mut client.get_connection().unwrap())
            .unwrap_err()
    });
    loop {
        match store.seen("a").await {
            Ok(seen) => assert!(!seen),
            Err(error) => {
                assert!(unavailable::<()>(Err(error)).contains("BUSY"));
                break;
            }
        }
    }
    let () = redis.command(&["SCRIPT", "KILL"]);
    endless.join().unwrap();
    assert!(!store.seen("a").await.unwrap());
}
