//! Components that misbehave, and bodies that are made to hurt: the guard is
//! none the worse, and the next delivery is decided normally.

use crate::stores::{Probe, envelope};
use babelqueue_guard::component::{Component, Limits, artifacts};
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Decision, Delivery, Error, FailOpen, Guard, GuardError, Processed, Ticket};
use std::time::Duration;

async fn ok(_: babelqueue_guard::Context) -> Result<(), &'static str> {
    Ok(())
}

fn guard(store: &Probe, limits: Limits) -> (Guard, Component) {
    let component = Component::from_bytes(artifacts::PLAIN_COMPONENT, limits).unwrap();
    (
        Guard::with_component(component.clone(), store.clone()),
        component,
    )
}

async fn decides_normally(guard: &Guard) {
    let ran = guard.process(&envelope("next"), ok).await.unwrap();
    assert!(matches!(
        ran,
        Processed::Ran { .. } | Processed::Skipped { .. }
    ));
}

#[tokio::test]
async fn a_body_over_the_limit_is_an_error_and_not_looked_at() {
    let store = Probe::default();
    let mut limits = Limits::TRUSTED;
    limits.body = 1_000;
    let (guard, _) = guard(&store, limits);
    let body = " ".repeat(1_001);
    let error = guard.process(&body, ok).await.unwrap_err();
    assert_eq!(
        error,
        Error::Guard(GuardError::BodyTooLarge {
            len: 1_001,
            limit: 1_000
        })
    );
    let open = guard.process(&body[1..], ok).await.unwrap();
    assert_eq!(open.fail_open(), Some(FailOpen::Malformed));
    assert!(store.asked().is_empty());
    decides_normally(&guard).await;
}

#[tokio::test]
async fn the_largest_bodies_are_decided_and_their_memory_given_back() {
    let store = Probe::default();
    let (guard, component) = guard(&store, Limits::TRUSTED);
    let limit = Limits::TRUSTED.body;
    let deep = "[".repeat(limit);
    let asked = component.ask(&Delivery::from_body(&deep)).unwrap();
    let malformed = Decision::Run(Ticket::Open(FailOpen::Malformed));
    assert_eq!(asked, Asked::Decided(malformed));
    assert_eq!(
        component.pooled(),
        0,
        "an instance that has grown is not kept"
    );
    let head = r#"{"meta":{"id":"long"},"data":""#;
    let text = format!("{head}{}\"}}", "x".repeat(limit - head.len() - 2));
    assert_eq!(text.len(), limit);
    let ran = guard.process(&text, ok).await.unwrap();
    assert_eq!(ran.id(), Some("long"));
    decides_normally(&guard).await;
    assert_eq!(component.pooled(), 1);
}

#[tokio::test]
async fn an_instance_that_runs_out_of_memory_is_replaced() {
    let store = Probe::default();
    let mut limits = Limits::TRUSTED;
    limits.memory = 256 << 10;
    let (guard, component) = guard(&store, limits);
    decides_normally(&guard).await;
    assert_eq!(component.pooled(), 1);
    let error = guard.process(&" ".repeat(1 << 20), ok).await.unwrap_err();
    assert!(
        matches!(error, Error::Guard(GuardError::Trap(_))),
        "{error:?}"
    );
    assert_eq!(component.pooled(), 0, "the instance that trapped is gone");
    decides_normally(&guard).await;
}

#[tokio::test]
async fn a_deadline_ends_one_call_and_no_other() {
    let store = Probe::default();
    let mut limits = Limits::FOREIGN;
    limits.deadline = Some(Duration::from_millis(30));
    let (guard, _) = guard(&store, limits);
    for _ in 0..3 {
        // Ticks pass between the calls, and each call starts anew.
        tokio::time::sleep(Duration::from_millis(100)).await;
        decides_normally(&guard).await;
    }
}

#[tokio::test]
async fn precompiled_code_decides_like_the_component_it_came_from() {
    let compiled = Component::plain().unwrap().precompiled().unwrap();
    // SAFETY: made by this process a moment ago.
    let component = unsafe { Component::from_precompiled(&compiled, Limits::TRUSTED) }.unwrap();
    let guard = Guard::with_component(component, Probe::default());
    decides_normally(&guard).await;
    decides_normally(&guard).await;
}

#[test]
fn what_is_no_guard_is_refused_with_a_reason() {
    for bytes in [&b"not wasm"[..], b"", artifacts::PLAIN_CORE] {
        let error = Component::from_bytes(bytes, Limits::TRUSTED).unwrap_err();
        assert!(matches!(error, GuardError::Component(_)), "{error:?}");
    }
}
