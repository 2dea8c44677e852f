//! Callers that go away in the middle: nothing is marked that did not
//! succeed, and no success loses its mark.

use crate::stores::{Probe, envelope};
use babelqueue_guard::{ClaimOutcome, Claims, Guard, Processed, Store};
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

/// Polls a future a few times without waiting for it.
async fn poll_a_while(future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..20 {
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..1_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn a_success_is_marked_though_the_caller_is_gone() {
    for claiming in [false, true] {
        let store = Probe::default();
        let guard = if claiming {
            Guard::claiming(store.clone()).unwrap()
        } else {
            Guard::new(store.clone()).unwrap()
        };
        let mut gate = None;
        let body = envelope("a");
        let ended = poll_a_while(guard.process(&body, async |_| {
            // From here on the store keeps everybody waiting.
            gate = Some(store.close());
            Ok::<_, ()>(())
        }))
        .await;
        assert!(!ended, "the future was dropped while it was settling");
        gate.unwrap().add_permits(10);
        eventually("marked", async || store.memory.seen("a").await.unwrap()).await;
        let next = store.memory.claim("a").await.unwrap();
        assert_eq!(next, ClaimOutcome::Done);
    }
}

#[tokio::test]
async fn a_handler_that_is_dropped_marks_nothing_and_gives_its_lease_up() {
    for claiming in [false, true] {
        let store = Probe::default();
        let guard = if claiming {
            Guard::claiming(store.clone()).unwrap()
        } else {
            Guard::new(store.clone()).unwrap()
        };
        let body = envelope("a");
        let ended = poll_a_while(guard.process(&body, async |_| {
            pending::<()>().await;
            Ok::<_, ()>(())
        }))
        .await;
        assert!(!ended);
        eventually("free again", async || {
            matches!(
                guard.process(&body, async |_| Ok::<_, ()>(())).await,
                Ok(Processed::Ran { .. })
            )
        })
        .await;
    }
}

#[tokio::test]
async fn a_claim_that_nobody_waits_for_is_given_up() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let gate = store.close();
    let body = envelope("a");
    let ended = poll_a_while(guard.process(&body, async |_| Ok::<_, ()>(()))).await;
    assert!(!ended, "the future was dropped while it was claiming");
    assert_eq!(store.waiting.load(Ordering::SeqCst), 1);
    gate.add_permits(10);
    eventually("released", async || {
        store.asked().contains(&"release a".to_owned())
    })
    .await;
    eventually("free again", async || {
        matches!(store.memory.claim("a").await.unwrap(), ClaimOutcome::Won(_))
    })
    .await;
}
