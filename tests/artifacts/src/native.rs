//! The same calls on the native logic.

use crate::{Call, Reply, World};
use babelqueue_guard_logic::types::StoreError;
use babelqueue_guard_logic::{Claiming, Guard, Plain, once};
use envelope_corpus::recording::{Answer, Outcomes, record};

/// What the native logic makes of a call, given the store's answer.
///
/// # Panics
///
/// If the world has no such function, or the answer is not one to what is
/// asked.
pub fn native(world: World, call: &Call, answer: &Answer) -> Outcomes<Reply> {
    record(answer, |store| match (world, call) {
        (World::Claiming, Call::Once(ticket, step)) => {
            once(&store, ticket.clone(), step).map(Reply::Bool)
        }
        (World::Plain, _) => guarded(&Plain(store), call),
        (World::Claiming, _) => guarded(&Claiming(store), call),
    })
}

fn guarded(guard: &impl Guard, call: &Call) -> Result<Reply, StoreError> {
    match call.clone() {
        Call::Decide(body) => guard.decide(&body).map(Reply::Decision),
        Call::DecideText(body) => guard.decide(body.as_bytes()).map(Reply::Decision),
        Call::DecideId(id) => guard.decide_id(id).map(Reply::Decision),
        Call::Settle(ticket, outcome) => guard.settle(ticket, outcome).map(Reply::Settled),
        Call::Renew(ticket) => guard.renew(ticket).map(Reply::Hold),
        Call::Forget(id) => guard.forget(&id).map(|()| Reply::Nothing),
        Call::Once(..) => panic!("the world plain has no steps"),
    }
}
