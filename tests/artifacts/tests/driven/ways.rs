//! The two ways to run a guard over a store.

use crate::model::Model;
use artifact_tests::{Artifact, Call, Maker, Reply, World};
use babelqueue_guard::{self as host, Claims, Component, Delivery, Guard, Marker, Store};
use babelqueue_guard_logic::types as wit;
use envelope_corpus::recording::{Question, Value};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The store is linked to the artifact's imports, and asked in the middle of a
/// call.
pub(crate) struct Linked {
    artifact: Box<dyn Artifact>,
    pub(crate) store: Model,
}

impl Linked {
    pub(crate) fn new(maker: &Maker) -> Self {
        Self {
            artifact: maker.instance(),
            store: Model::default(),
        }
    }

    pub(crate) fn call(&mut self, call: &Call) -> Result<Reply, wit::StoreError> {
        let store = self.store.clone();
        let store = Box::new(move |question: &Question| store.answer(question));
        self.artifact.call_over(store, call).unwrap().0
    }
}

/// The Rust host asks the component what it wants to know, then the store, and
/// then tells the component the answer.
pub(crate) struct Driven {
    guard: Guard,
    component: Component,
    pub(crate) store: Model,
}

impl Driven {
    pub(crate) fn new(world: World) -> Self {
        let store = Model::default();
        let (guard, component) = match world {
            World::Plain => (Guard::new(store.clone()), Component::plain()),
            World::Claiming => (Guard::claiming(store.clone()), Component::claiming()),
        };
        Self {
            guard: guard.unwrap(),
            component: component.unwrap(),
            store,
        }
    }

    pub(crate) fn call(&self, call: &Call) -> Result<Reply, wit::StoreError> {
        let replied = match call {
            Call::Decide(body) => self.decide(Delivery::from_body(body)),
            Call::DecideText(text) => self.decide(Delivery::from_body(text)),
            Call::DecideId(id) => self.decide(Delivery::from_id(id)),
            Call::Settle(ticket, outcome) => {
                let outcome = match outcome {
                    wit::Outcome::Succeeded => host::Outcome::Succeeded,
                    wit::Outcome::Failed => host::Outcome::Failed,
                };
                ready(self.guard.settle(&into_ticket(ticket), outcome))
                    .map(|settled| Reply::Settled(from_settled(settled)))
            }
            Call::Renew(ticket) => ready(self.guard.renew(&into_ticket(ticket)))
                .map(|hold| Reply::Hold(from_hold(hold))),
            Call::Forget(id) => ready(self.guard.forget(id)).map(|()| Reply::Nothing),
            Call::Once(ticket, step) => self.once(ticket, step),
        };
        replied.map_err(|error| match error {
            host::Error::Store(error) => from_error(error),
            host::Error::Guard(error) => unreachable!("{call:?}: {error}"),
        })
    }

    fn decide(&self, delivery: Delivery<'_>) -> Result<Reply, host::Error> {
        let decision = ready(self.guard.decide(&delivery))?;
        Ok(Reply::Decision(from_decision(decision)))
    }

    /// As the handler's context does it.
    fn once(&self, ticket: &wit::Ticket, step: &str) -> Result<Reply, host::Error> {
        Ok(Reply::Bool(
            match self.component.step(&into_ticket(ticket), step)? {
                Some(id) => ready(self.store.set_once(&id, step))?,
                None => true,
            },
        ))
    }
}

/// Nothing here waits for anything.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the store answers at once"),
    }
}

impl Model {
    fn ask(&self, function: &str, arguments: &[&str]) -> Result<Value, host::StoreError> {
        self.answer(&Question::new(function, arguments))
            .map_err(|error| match error {
                wit::StoreError::Unavailable(text) => host::StoreError::Unavailable(text),
                wit::StoreError::Rejected(text) => host::StoreError::Rejected(text),
            })
    }

    fn hold(&self, function: &str, id: &str, token: &str) -> Result<host::Hold, host::StoreError> {
        match self.ask(function, &[id, token])? {
            Value::Hold(wit::Hold::Held) => Ok(host::Hold::Held),
            Value::Hold(wit::Hold::Lost) => Ok(host::Hold::Lost),
            other => unreachable!("{other:?}"),
        }
    }
}

#[host::async_trait]
impl Store for Model {
    async fn seen(&self, id: &str) -> Result<bool, host::StoreError> {
        Ok(self.ask("seen", &[id])? == Value::Bool(true))
    }
    async fn remember(&self, id: &str) -> Result<(), host::StoreError> {
        self.ask("remember", &[id]).map(drop)
    }
    async fn forget(&self, id: &str) -> Result<(), host::StoreError> {
        self.ask("forget", &[id]).map(drop)
    }
}

#[host::async_trait]
impl Claims for Model {
    async fn claim(&self, id: &str) -> Result<host::ClaimOutcome, host::StoreError> {
        match self.ask("claim", &[id])? {
            Value::Claim(wit::ClaimOutcome::Won(lease)) => {
                Ok(host::ClaimOutcome::Won(into_lease(&lease)))
            }
            Value::Claim(wit::ClaimOutcome::Busy(left)) => Ok(host::ClaimOutcome::Busy(left)),
            Value::Claim(wit::ClaimOutcome::Done) => Ok(host::ClaimOutcome::Done),
            other => unreachable!("{other:?}"),
        }
    }
    async fn renew(&self, id: &str, token: &str) -> Result<host::Hold, host::StoreError> {
        self.hold("renew", id, token)
    }
    async fn complete(&self, id: &str, token: &str) -> Result<host::Hold, host::StoreError> {
        self.hold("complete", id, token)
    }
    async fn release(&self, id: &str, token: &str) -> Result<host::Hold, host::StoreError> {
        self.hold("release", id, token)
    }
}

#[host::async_trait]
impl Marker for Model {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, host::StoreError> {
        Ok(self.ask("set-once", &[id, step])? == Value::Bool(true))
    }
}

fn into_lease(lease: &wit::Lease) -> host::Lease {
    host::Lease {
        token: lease.token.clone(),
        length_ms: lease.length_ms,
    }
}

fn into_ticket(ticket: &wit::Ticket) -> host::Ticket {
    match ticket {
        wit::Ticket::Open(reason) => host::Ticket::Open(match reason {
            wit::FailOpen::Malformed => host::FailOpen::Malformed,
            wit::FailOpen::Absent => host::FailOpen::Absent,
            wit::FailOpen::Unusable => host::FailOpen::Unusable,
        }),
        wit::Ticket::Seen(id) => host::Ticket::Seen(id.clone()),
        wit::Ticket::Leased(leased) => host::Ticket::Leased(host::Leased {
            id: leased.id.clone(),
            lease: into_lease(&leased.lease),
        }),
    }
}

fn from_ticket(ticket: host::Ticket) -> wit::Ticket {
    match ticket {
        host::Ticket::Open(reason) => wit::Ticket::Open(match reason {
            host::FailOpen::Malformed => wit::FailOpen::Malformed,
            host::FailOpen::Absent => wit::FailOpen::Absent,
            host::FailOpen::Unusable => wit::FailOpen::Unusable,
        }),
        host::Ticket::Seen(id) => wit::Ticket::Seen(id),
        host::Ticket::Leased(leased) => wit::Ticket::Leased(wit::Leased {
            id: leased.id,
            lease: wit::Lease {
                token: leased.lease.token,
                length_ms: leased.lease.length_ms,
            },
        }),
    }
}

fn from_decision(decision: host::Decision) -> wit::Decision {
    match decision {
        host::Decision::Run(ticket) => wit::Decision::Run(from_ticket(ticket)),
        host::Decision::Skip(id) => wit::Decision::Skip(id),
        host::Decision::Park(parked) => wit::Decision::Park(wit::Parked {
            id: parked.id,
            left_ms: parked.left_ms,
        }),
    }
}

fn from_settled(settled: host::Settled) -> wit::Settled {
    match settled {
        host::Settled::Nothing => wit::Settled::Nothing,
        host::Settled::Marked => wit::Settled::Marked,
        host::Settled::MarkedLate => wit::Settled::MarkedLate,
        host::Settled::Released => wit::Settled::Released,
        host::Settled::LeaseLost => wit::Settled::LeaseLost,
    }
}

fn from_hold(hold: host::Hold) -> wit::Hold {
    match hold {
        host::Hold::Held => wit::Hold::Held,
        host::Hold::Lost => wit::Hold::Lost,
    }
}

fn from_error(error: host::StoreError) -> wit::StoreError {
    match error {
        host::StoreError::Unavailable(text) => wit::StoreError::Unavailable(text),
        host::StoreError::Rejected(text) => wit::StoreError::Rejected(text),
    }
}
