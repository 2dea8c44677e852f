//! The layer for `tower`: what the guard decides, and when the service behind
//! it is ready.

use crate::stores::{Probe, envelope};
use babelqueue_guard::tower::{GuardLayer, GuardService, Guarded, ServiceError};
use babelqueue_guard::{
    ClaimOutcome, Claims, Delivery, Error, Guard, Processed, REPLAY_HEADER, Store, StoreError,
};
use std::future::{Ready, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::sync::Semaphore;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

#[derive(Clone)]
struct Message {
    body: String,
    headers: Vec<&'static str>,
}

fn message(id: &str) -> Message {
    Message {
        body: envelope(id),
        headers: Vec::new(),
    }
}

fn delivery(message: &Message) -> Delivery<'_> {
    Delivery::from_body(&message.body).with_headers(&message.headers)
}

type Layered<S> = GuardService<S, fn(&Message) -> Delivery<'_>>;

fn layer(guard: &Guard) -> GuardLayer<fn(&Message) -> Delivery<'_>> {
    GuardLayer::new(guard.clone(), delivery)
}

fn is_ready<S, R>(service: &mut S) -> bool
where
    S: Service<R>,
{
    let mut context = Context::from_waker(Waker::noop());
    matches!(service.poll_ready(&mut context), Poll::Ready(Ok(())))
}

#[tokio::test]
async fn a_service_is_called_once_for_a_message() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let mut service = ServiceBuilder::new()
        .concurrency_limit(8)
        .layer(layer(&guard))
        .service_fn(async |guarded: Guarded<Message>| {
            assert_eq!(
                guarded.request.body,
                envelope(guarded.context.id().unwrap())
            );
            match guarded.context.is_replay() {
                true => Err("not again"),
                false => Ok("charged"),
            }
        });
    let ran = service.ready().await.unwrap().call(message("a")).await;
    assert!(matches!(
        ran,
        Ok(Processed::Ran {
            value: "charged",
            ..
        })
    ));
    let skipped = service.ready().await.unwrap().call(message("a")).await;
    assert!(matches!(skipped, Ok(Processed::Skipped { .. })));

    let mut replay = message("b");
    replay.headers.push(REPLAY_HEADER);
    let failed = service.ready().await.unwrap().call(replay).await;
    assert!(matches!(
        failed,
        Ok(Processed::Failed {
            error: "not again",
            ..
        })
    ));
    // Such a call can be given to the runtime.
    let retried = service.ready().await.unwrap().call(message("b"));
    let retried = tokio::spawn(retried).await.unwrap();
    assert!(matches!(retried, Ok(Processed::Ran { .. })));
}

#[tokio::test]
async fn what_cannot_be_decided_reaches_no_service() {
    let store = Probe::default();
    let guard = Guard::new(store.clone()).unwrap();
    let down = StoreError::Unavailable("down".into());
    store.fail("seen", down.clone());
    let mut service =
        layer(&guard).layer(service_fn(|_: Guarded<Message>| -> Ready<Result<(), ()>> {
            panic!("not to be called")
        }));
    let undecided = service.ready().await.unwrap().call(message("a")).await;
    let error = undecided.unwrap_err();
    assert_eq!(error, ServiceError::Undecided(Error::Store(down)));
}

/// Ready once it has been asked, and for one call.
#[derive(Default)]
struct Strict {
    ready: bool,
    calls: Arc<AtomicUsize>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            calls: self.calls.clone(),
        }
    }
}

impl Service<Guarded<Message>> for Strict {
    type Response = ();
    type Error = &'static str;
    type Future = Ready<Result<(), &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.calls.load(Ordering::SeqCst) == 3 {
            return Poll::Ready(Err("worn out"));
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Guarded<Message>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        self.calls.fetch_add(1, Ordering::SeqCst);
        ready(Ok(()))
    }
}

#[tokio::test]
async fn the_service_that_is_called_is_the_one_that_was_ready() {
    let guard = Guard::new(Probe::default()).unwrap();
    let mut service: Layered<Strict> = layer(&guard).layer(Strict::default());
    for id in ["a", "b", "c"] {
        let ran = service.ready().await.unwrap().call(message(id)).await;
        assert!(matches!(ran, Ok(Processed::Ran { .. })));
    }
    let error = service.ready().await.err().unwrap();
    assert_eq!(error, ServiceError::NotReady("worn out"));
    assert!(error.to_string().contains("worn out"));
}

#[tokio::test]
async fn it_is_ready_when_the_service_is_and_keeps_no_readiness_that_it_does_not_use() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let mut service = ServiceBuilder::new()
        .layer(layer(&guard))
        .concurrency_limit(2)
        .service_fn(move |_: Guarded<Message>| {
            let gate = inner.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Ok::<_, ()>(())
            }
        });
    let first = tokio::spawn(service.ready().await.unwrap().call(message("a")));
    while !store.asked().contains(&"claim a".into()) {
        tokio::task::yield_now().await;
    }
    for _ in 0..5 {
        let parked = service.ready().await.unwrap().call(message("a")).await;
        assert!(matches!(parked, Ok(Processed::Parked(_))));
    }
    let second = tokio::spawn(service.ready().await.unwrap().call(message("b")));
    assert!(!is_ready(&mut service), "both are busy");
    gate.add_permits(1);
    let ran = first.await.unwrap();
    assert!(matches!(ran, Ok(Processed::Ran { .. })));
    for _ in 0..5 {
        let skipped = service.ready().await.unwrap().call(message("a")).await;
        assert!(matches!(skipped, Ok(Processed::Skipped { .. })));
    }
    gate.add_permits(1);
    let ran = second.await.unwrap();
    assert!(matches!(ran, Ok(Processed::Ran { .. })));
}

#[tokio::test]
async fn a_call_that_is_dropped_marks_nothing_and_gives_its_lease_up() {
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap();
    let mut service = layer(&guard).layer(service_fn(|_: Guarded<Message>| {
        pending::<Result<(), ()>>()
    }));
    let mut call = service.ready().await.unwrap().call(message("a"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    drop(call);
    while !store.asked().contains(&"release a".into()) {
        tokio::task::yield_now().await;
    }
    assert!(!store.memory.seen("a").await.unwrap());
    let free = store.memory.claim("a").await.unwrap();
    assert!(matches!(free, ClaimOutcome::Won(_)));
}
