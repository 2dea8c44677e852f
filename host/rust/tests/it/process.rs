//! The whole cycle over a seen-set: the table of the contract's section 2, row
//! by row.

use crate::stores::{Probe, envelope};
use babelqueue_guard::{
    Delivery, Error, FailOpen, Guard, Mark, Processed, REPLAY_HEADER, Store, StoreError,
};
use std::sync::atomic::{AtomicUsize, Ordering};

fn down() -> StoreError {
    StoreError::Unavailable("the store is down".into())
}

async fn ok(_: babelqueue_guard::Context) -> Result<(), &'static str> {
    Ok(())
}

async fn never(_: babelqueue_guard::Context) -> Result<(), &'static str> {
    panic!("the handler must not be called")
}

#[tokio::test]
async fn runs_once_and_then_skips() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let body = envelope("a");
    let first = guard.process(&body, ok).await.unwrap();
    assert!(
        matches!(&first, Processed::Ran { id: Ok(id), mark: Mark::Set, .. } if id == "a"),
        "{first:?}"
    );
    assert!(first.acknowledge());
    let second = guard.process(&body, never).await.unwrap();
    assert!(matches!(&second, Processed::Skipped { id } if id == "a"));
    assert!(second.acknowledge());
    assert_eq!(store.asked(), ["seen a", "remember a", "seen a"]);
}

#[tokio::test]
async fn a_failure_keeps_its_error_and_leaves_no_mark() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let body = envelope("a");
    let failed = guard
        .process(&body, async |_| Err::<(), _>("no funds"))
        .await
        .unwrap();
    assert!(matches!(&failed, Processed::Failed { error: "no funds", id: Ok(id) } if id == "a"));
    assert!(!failed.acknowledge());
    let retried = guard.process(&body, ok).await.unwrap();
    assert!(matches!(
        retried,
        Processed::Ran {
            mark: Mark::Set,
            ..
        }
    ));
}

#[tokio::test]
async fn without_an_id_it_runs_each_time_and_asks_nothing() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    for (body, reason) in [
        ("not json", FailOpen::Malformed),
        (r#"{"data":{}}"#, FailOpen::Absent),
        (r#"{"meta":{"id":7}}"#, FailOpen::Unusable),
    ] {
        for _ in 0..2 {
            let ran = guard
                .process(body, async |context| {
                    assert_eq!(context.id(), None);
                    assert_eq!(context.fail_open(), Some(reason));
                    Ok::<_, ()>(())
                })
                .await
                .unwrap();
            assert_eq!(ran.fail_open(), Some(reason));
            assert!(matches!(
                ran,
                Processed::Ran {
                    mark: Mark::NoId,
                    ..
                }
            ));
        }
    }
    let long = "x".repeat(2_049);
    for id in ["", "a\0b", &long] {
        let ran = guard.process(Delivery::from_id(id), ok).await.unwrap();
        assert_eq!(ran.fail_open(), Some(FailOpen::Unusable), "{id:?}");
    }
    assert_eq!(store.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_id_that_is_known_does_as_well_as_a_body() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let ran = guard.process(Delivery::from_id("a"), ok).await.unwrap();
    assert!(matches!(ran, Processed::Ran { .. }));
    let skipped = guard.process(&envelope("a"), never).await.unwrap();
    assert!(matches!(skipped, Processed::Skipped { .. }));
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_stops_the_delivery() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    for error in [down(), StoreError::Rejected("no such table".into())] {
        store.fail("seen", error.clone());
        let result = guard.process(&envelope("a"), never).await;
        assert_eq!(result.unwrap_err(), Error::Store(error));
    }
    store.mend();
    let ran = guard.process(&envelope("a"), ok).await.unwrap();
    assert!(matches!(ran, Processed::Ran { .. }), "nothing was marked");
}

#[tokio::test]
async fn a_mark_that_fails_after_success_is_told_and_the_delivery_acknowledged() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    store.fail("remember", down());
    let ran = guard.process(&envelope("a"), ok).await.unwrap();
    assert!(ran.acknowledge());
    let Processed::Ran { mark, .. } = ran else {
        panic!("{ran:?}")
    };
    assert_eq!(mark, Mark::Missing(Error::Store(down())));
}

#[tokio::test]
async fn forgetting_lets_a_replay_run_and_the_header_alone_does_not() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let body = envelope("a");
    let _ = guard.process(&body, ok).await.unwrap();
    let replay = Delivery::from_body(&body).with_headers(["traceparent", REPLAY_HEADER]);
    let skipped = guard.process(replay, never).await.unwrap();
    assert!(matches!(skipped, Processed::Skipped { .. }));

    guard.forget("a").await.unwrap();
    let told = async |context: babelqueue_guard::Context| Ok::<_, ()>(context.is_replay());
    let ran = guard.process(replay, told).await.unwrap();
    assert!(matches!(ran, Processed::Ran { value: true, .. }));
    guard.forget("a").await.unwrap();
    let ran = guard.process(&body, told).await.unwrap();
    assert!(matches!(ran, Processed::Ran { value: false, .. }));

    for unusable in ["", "a\0", &"x".repeat(2_049)] {
        let refused = guard.forget(unusable).await.unwrap_err();
        assert_eq!(refused.class(), "rejected");
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_and_goes_on() {
    for claiming in [false, true] {
        let store = Probe::default();
        let guard = if claiming {
            Guard::claiming(store.clone()).unwrap()
        } else {
            Guard::new(store.clone()).unwrap()
        };
        let panicking = guard.clone();
        let task = tokio::spawn(async move {
            panicking
                .process(&envelope("a"), async |_| -> Result<(), ()> {
                    panic!("out of paper")
                })
                .await
        });
        let panic = task.await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"out of paper"));
        assert!(!store.memory.seen("a").await.unwrap());
        let ran = guard.process(&envelope("a"), ok).await.unwrap();
        assert!(matches!(ran, Processed::Ran { .. }), "claiming: {claiming}");
    }
}

#[tokio::test]
async fn a_handler_and_a_store_may_call_the_guard_again() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let inner = guard.clone();
    let ran = guard
        .process(&envelope("outer"), async |_| {
            let ran = inner.process(&envelope("inner"), ok).await.unwrap();
            assert!(matches!(ran, Processed::Ran { .. }));
            inner.forget("inner").await
        })
        .await
        .unwrap();
    assert!(matches!(
        ran,
        Processed::Ran {
            mark: Mark::Set,
            ..
        }
    ));
    assert!(store.memory.seen("outer").await.unwrap());
    assert!(!store.memory.seen("inner").await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_deliveries_in_flight_share_a_few_instances() {
    const DELIVERIES: usize = 10_000;
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let gate = store.close();
    let ran = std::sync::Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..DELIVERIES)
        .map(|n| {
            let (guard, ran) = (guard.clone(), ran.clone());
            tokio::spawn(async move {
                guard
                    .process(&envelope(&n.to_string()), async |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, ()>(())
                    })
                    .await
                    .unwrap()
                    .acknowledge()
            })
        })
        .collect();
    while store.waiting.load(Ordering::SeqCst) < DELIVERIES {
        tokio::task::yield_now().await;
    }
    gate.add_permits(2 * DELIVERIES);
    for task in tasks {
        assert!(task.await.unwrap());
    }
    assert_eq!(ran.load(Ordering::Relaxed), DELIVERIES);
    let component = babelqueue_guard::Component::plain().unwrap();
    // The component is shared by all tests of this program, on any thread.
    assert!(component.pooled() <= 64, "{component:?}");
}

#[tokio::test]
async fn steps_run_once_beside_a_handler_that_runs_again() {
    let store = Probe::default();
    let guard = Guard::new(store.clone())
        .unwrap()
        .with_steps(store.memory.clone());
    let mut counted = 0;
    for _ in 0..3 {
        let result = guard
            .process(&envelope("a"), async |context| {
                counted += usize::from(context.once("attempt").await.unwrap());
                let refused = context.once("Not a name").await.unwrap_err();
                assert_eq!(refused.class(), "rejected");
                Err::<(), _>("later")
            })
            .await
            .unwrap();
        assert!(matches!(result, Processed::Failed { .. }));
    }
    assert_eq!(counted, 1);
    let open = guard
        .process("[]", async |context| context.once("attempt").await)
        .await
        .unwrap();
    assert!(matches!(open, Processed::Ran { value: true, .. }));

    let bare = Guard::new(store.clone()).unwrap();
    let refused = bare
        .process(&envelope("b"), async |context| context.once("s").await)
        .await
        .unwrap();
    assert!(matches!(
        refused,
        Processed::Failed {
            error: Error::Guard(_),
            ..
        }
    ));
}
