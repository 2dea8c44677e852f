//! The Rust host never lets a component wait for its store; other hosts link
//! their store straight to the imports. Both come to the same replies, ask the
//! same questions in the same order, and leave the same behind.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, a trap fails the test"
)]

mod model;
mod ways;

use crate::ways::{Driven, Linked};
use artifact_tests::{Call, Maker, Reply, World, makers};
use babelqueue_guard_logic::types::{
    Decision, FailOpen, Lease, Leased, Outcome, StoreError, Ticket,
};
use envelope_corpus::table::{self, Effect, Ending};
use envelope_corpus::{Bodies, count};
use fastrand::Rng;

/// The same guard twice, each over a store of its own.
struct Pair<'a> {
    maker: &'a Maker,
    linked: Linked,
    driven: Driven,
}

impl<'a> Pair<'a> {
    fn new(maker: &'a Maker) -> Self {
        Self {
            maker,
            linked: Linked::new(maker),
            driven: Driven::new(maker.world),
        }
    }

    /// Makes a call both ways, and compares.
    fn call(&mut self, call: &Call) -> Result<Reply, StoreError> {
        let linked = self.linked.call(call);
        let driven = self.driven.call(call);
        assert_eq!(driven, linked, "{}: {call:?}", self.maker.file);
        let stores = [self.driven.store.snapshot(), self.linked.store.snapshot()];
        assert_eq!(stores[0], stores[1], "{}: {call:?}", self.maker.file);
        linked
    }

    fn decide(&mut self, call: &Call) -> Decision {
        match self.call(call) {
            Ok(Reply::Decision(decision)) => decision,
            other => unreachable!("{call:?}: {other:?}"),
        }
    }

    fn fail(&self, error: &StoreError) {
        self.linked.store.fail(error.clone());
        self.driven.store.fail(error.clone());
    }

    fn pass(&self, millis: u64) {
        self.linked.store.pass(millis);
        self.driven.store.pass(millis);
    }

    fn claims(&self) -> bool {
        self.maker.world == World::Claiming
    }

    /// All that can happen to one delivery, and to its copies.
    fn live_through(&mut self, decide: &Call) {
        let Decision::Run(ticket) = self.decide(decide) else {
            unreachable!("{decide:?} is new")
        };
        let id = match &ticket {
            Ticket::Open(_) => None,
            Ticket::Seen(id) | Ticket::Leased(Leased { id, .. }) => Some(id.clone()),
        };
        self.decide(decide);
        self.fail_and_try_again(&Call::Settle(ticket.clone(), Outcome::Failed));
        if let Decision::Run(ticket) = self.decide(decide) {
            self.fail_and_try_again(&Call::Renew(ticket.clone()));
            if self.claims() {
                let once = Call::Once(ticket.clone(), "add_points".into());
                self.fail_and_try_again(&once);
                let _ = self.call(&once);
            }
            self.fail_and_try_again(&Call::Settle(ticket, Outcome::Succeeded));
        }
        self.fail_and_try_again(decide);
        if let Some(id) = id {
            assert_eq!(self.decide(decide), Decision::Skip(id.clone()));
            self.fail_and_try_again(&Call::Forget(id));
        }
        assert!(matches!(self.decide(decide), Decision::Run(_)));
    }

    fn fail_and_try_again(&mut self, call: &Call) {
        for error in [
            StoreError::Unavailable("no route to the store".into()),
            StoreError::Rejected("another type under the key".into()),
        ] {
            self.fail(&error);
            let _ = self.call(call);
            // Not every call asks something.
            self.linked.store.mend();
            self.driven.store.mend();
        }
        let _ = self.call(call);
    }
}

#[test]
fn every_body_of_the_table_fares_alike() {
    for maker in makers() {
        for case in table::bodies() {
            // Without a mark for each: an id stands in more than one body.
            Pair::new(&maker).live_through(&Call::Decide(case.body.clone()));
            if let Ok(text) = String::from_utf8(case.body) {
                Pair::new(&maker).live_through(&Call::DecideText(text));
            }
        }
    }
}

#[test]
fn every_id_of_the_table_fares_alike() {
    for maker in makers() {
        for case in table::given_ids() {
            Pair::new(&maker).live_through(&Call::DecideId(case.id.clone()));
            let mut pair = Pair::new(&maker);
            let forgotten = pair.call(&Call::Forget(case.id.clone()));
            assert_eq!(forgotten.is_ok(), case.usable, "{}", case.why);
        }
    }
}

#[test]
fn generated_bodies_fare_alike() {
    for maker in makers() {
        let mut pair = Pair::new(&maker);
        for (n, body) in Bodies::new(5).take(count(5_000)).enumerate() {
            if n % 50 == 0 {
                // What is compared after each call is not to grow for ever.
                pair = Pair::new(&maker);
            }
            if let Decision::Run(ticket) = pair.decide(&Call::Decide(body)) {
                let _ = pair.call(&Call::Settle(ticket, Outcome::Succeeded));
            }
        }
    }
}

#[test]
fn every_sequence_of_the_manifest_fares_alike() {
    for maker in makers() {
        for sequence in table::sequences() {
            let mut pair = Pair::new(&maker);
            for delivery in &sequence.deliveries {
                if delivery.forget_before {
                    let _ = pair.call(&Call::Forget(delivery.meta_id.clone()));
                }
                let decision = pair.decide(&Call::Decide(delivery.body().into_bytes()));
                let effect = match decision {
                    Decision::Run(ticket) => {
                        let outcome = match delivery.outcome {
                            Some(Ending::Throw) => Outcome::Failed,
                            Some(Ending::Ok) | None => Outcome::Succeeded,
                        };
                        let _ = pair.call(&Call::Settle(ticket, outcome));
                        Effect::Run
                    }
                    Decision::Skip(_) => Effect::Skip,
                    Decision::Park(_) => unreachable!("nothing is held here"),
                };
                assert_eq!(effect, delivery.expect_effect, "{}", sequence.name);
            }
        }
    }
}

/// Anything after anything else: copies in flight, leases that lapse, tickets
/// settled twice and tickets that nobody was given, a store that fails.
#[test]
fn histories_put_together_at_random_fare_alike() {
    let mut rng = Rng::with_seed(7);
    for maker in makers() {
        for _ in 0..count(20_000) / 100 {
            let mut pair = Pair::new(&maker);
            let mut tickets = vec![Ticket::Open(FailOpen::Absent)];
            for _ in 0..100 {
                if rng.u8(..10) == 0 {
                    pair.fail(&StoreError::Unavailable("down for a moment".into()));
                }
                if rng.u8(..6) == 0 {
                    pair.pass(rng.u64(..800));
                }
                let call = at_random(&mut rng, &tickets, maker.world);
                if let Ok(Reply::Decision(Decision::Run(ticket))) = pair.call(&call) {
                    tickets.push(ticket);
                }
            }
        }
    }
}

fn at_random(rng: &mut Rng, tickets: &[Ticket], world: World) -> Call {
    let id = ["parcel-1", "parcel-2", "parcel-3", ""][rng.usize(..4)].to_owned();
    let body = format!(r#"{{"meta":{{"id":"{id}"}}}}"#);
    let ticket = match rng.u8(..12) {
        0 => Ticket::Seen(id.clone()),
        1 => {
            let token = format!("token {}", rng.u8(..9));
            let length_ms = 1_000;
            let lease = Lease { token, length_ms };
            Ticket::Leased(Leased {
                id: id.clone(),
                lease,
            })
        }
        _ => tickets[rng.usize(..tickets.len())].clone(),
    };
    match rng.u8(..16) {
        0..3 => Call::Decide(body.into_bytes()),
        3..5 => Call::DecideText(body),
        5..7 => Call::DecideId(id),
        7..10 => Call::Settle(ticket, Outcome::Succeeded),
        10..12 => Call::Settle(ticket, Outcome::Failed),
        12..14 => Call::Renew(ticket),
        14 if world == World::Claiming => {
            let step = ["add_points", "send_mail", "No name"][rng.usize(..3)];
            Call::Once(ticket, step.to_owned())
        }
        _ => Call::Forget(id),
    }
}
