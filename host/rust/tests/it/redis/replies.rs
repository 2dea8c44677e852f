//! Replies that get lost: what was asked has been done, and nobody was told.

use super::proxy::{Loss, Proxy};
use babelqueue_guard::store::redis::{RedisSettings, RedisStore};
use babelqueue_guard::{ClaimOutcome, Claims, Hold, Marker, Store, StoreError};
use std::time::Duration;
use test_servers::Redis;

/// A store with a short time to answer, behind a wire, and warm: its first
/// claim has been made.
async fn behind_a_wire(redis: &Redis) -> (RedisStore, Proxy) {
    let proxy = Proxy::to(redis.address()).await;
    let mut settings = RedisSettings::default();
    settings.response_timeout = Duration::from_secs(1);
    let store = RedisStore::connect(&proxy.url(), &settings).await.unwrap();
    store.claim("warm").await.unwrap();
    (store, proxy)
}

fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable(_)))
}

#[tokio::test]
async fn a_claim_recognises_its_own_token() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    for loss in [Loss::Closed, Loss::Silence] {
        let (store, proxy) = behind_a_wire(&redis).await;
        let id = format!("{loss:?}");
        proxy.lose(&[("bq:lease:", loss)]);
        let ClaimOutcome::Won(lease) = store.claim(&id).await.unwrap() else {
            panic!("{loss:?}: not won");
        };
        let holder: String = redis.command(&["GET", &format!("bq:lease:{id}")]);
        assert_eq!(holder, lease.token);
        // Twice the SET, the GET and the PTTL.
        assert_eq!(proxy.count(&format!("bq:lease:{id}\r\n")), 6);
        assert_eq!(store.release(&id, &lease.token).await.unwrap(), Hold::Held);
    }
}

#[tokio::test]
async fn a_claim_that_stays_unknown_is_given_back_and_never_busy() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    for loss in [Loss::Closed, Loss::Silence] {
        let (store, proxy) = behind_a_wire(&redis).await;
        let id = format!("{loss:?}");
        proxy.lose(&[("bq:lease:", loss), ("bq:lease:", loss)]);
        assert!(is_unavailable(&store.claim(&id).await));
        assert_eq!(
            redis.command::<i64>(&["EXISTS", &format!("bq:lease:{id}")]),
            0
        );
        assert!(matches!(
            store.claim(&id).await.unwrap(),
            ClaimOutcome::Won(_)
        ));
    }
}

#[tokio::test]
async fn a_claim_that_another_holds_is_busy_after_a_lost_reply_too() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let (store, proxy) = behind_a_wire(&redis).await;
    let () = redis.command(&["SET", "bq:lease:a", "another", "PX", "60000"]);
    proxy.lose(&[("bq:lease:", Loss::Closed)]);
    assert!(matches!(
        store.claim("a").await.unwrap(),
        ClaimOutcome::Busy(_)
    ));
    let holder: String = redis.command(&["GET", "bq:lease:a"]);
    assert_eq!(holder, "another");
}

#[tokio::test]
async fn a_steps_mark_is_sent_once() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    for loss in [Loss::Closed, Loss::Silence] {
        let (store, proxy) = behind_a_wire(&redis).await;
        let id = format!("{loss:?}");
        proxy.lose(&[("bq:once:", loss)]);
        assert!(is_unavailable(&store.set_once(&id, "count").await));
        assert_eq!(proxy.count("bq:once:"), 1);
        // The next delivery skips the step.
        assert!(!store.set_once(&id, "count").await.unwrap());
    }
}

#[tokio::test]
async fn what_may_be_done_twice_is_sent_again_over_a_new_connection() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let (store, proxy) = behind_a_wire(&redis).await;
    proxy.lose(&[("SET\r\n", Loss::Closed)]);
    store.remember("a").await.unwrap();
    proxy.lose(&[("GET\r\n", Loss::Closed)]);
    assert!(store.seen("a").await.unwrap());
    proxy.lose(&[("GETDEL\r\n", Loss::Closed)]);
    store.forget("a").await.unwrap();
    assert!(!store.seen("a").await.unwrap());

    let ClaimOutcome::Won(lease) = store.claim("b").await.unwrap() else {
        panic!("not won");
    };
    proxy.lose(&[("EVAL\r\n", Loss::Closed)]);
    assert_eq!(store.renew("b", &lease.token).await.unwrap(), Hold::Held);
    proxy.lose(&[("bq:idemp:b", Loss::Closed)]);
    store.complete("b", &lease.token).await.unwrap();
    assert!(store.seen("b").await.unwrap());
    assert_eq!(redis.command::<i64>(&["EXISTS", "bq:lease:b"]), 0);
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_nobodys() {
    let Some(redis) = test_servers::redis() else {
        return;
    };
    let (store, _proxy) = behind_a_wire(&redis).await;
    store.remember("a").await.unwrap();
    redis.pause();
    assert!(is_unavailable(&store.seen("a").await));
    redis.resume();
    // On the same connection this would be answered by the reply above.
    for _ in 0..10 {
        assert!(!store.seen("b").await.unwrap());
        assert!(store.seen("a").await.unwrap());
    }
}
