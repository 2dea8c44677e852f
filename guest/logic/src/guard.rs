//! Decides on deliveries and settles them (contract, sections 2 to 4).
//!
//! Each function asks its store at most one question, and passes an error of
//! the store on unchanged.

use crate::extract::extract;
use crate::id;
use crate::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Leased, Outcome, Parked, Settled, StoreError, Ticket,
};
use alloc::string::String;

/// The seen-set, as the WIT interface `store` describes it.
#[allow(
    missing_docs,
    reason = "documented where it is defined, in wit/store.wit"
)]
pub trait Store {
    fn seen(&self, id: &str) -> Result<bool, StoreError>;
    fn remember(&self, id: &str) -> Result<(), StoreError>;
    fn forget(&self, id: &str) -> Result<(), StoreError>;
}

/// Atomic claims, as the WIT interface `claims` describes them.
#[allow(
    missing_docs,
    reason = "documented where it is defined, in wit/claims.wit"
)]
pub trait Claims {
    fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError>;
    fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError>;
    fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError>;
    fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError>;
}

/// Single steps, as the WIT interface `marker` describes them.
#[allow(
    missing_docs,
    reason = "documented where it is defined, in wit/marker.wit"
)]
pub trait Marker {
    fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError>;
}

/// The exported interface `guard`, over some store.
#[allow(
    missing_docs,
    reason = "documented where it is defined, in wit/guard.wit"
)]
#[allow(
    clippy::missing_errors_doc,
    reason = "the store's own, or `rejected` for an unusable id"
)]
pub trait Guard {
    /// Decides on an id that is known to be usable.
    fn decide_usable(&self, id: String) -> Result<Decision, StoreError>;
    fn settle(&self, ticket: Ticket, outcome: Outcome) -> Result<Settled, StoreError>;
    fn renew(&self, ticket: Ticket) -> Result<Hold, StoreError>;
    fn forget(&self, id: &str) -> Result<(), StoreError>;

    fn decide(&self, envelope: &[u8]) -> Result<Decision, StoreError> {
        match extract(envelope) {
            Ok(id) => self.decide_usable(id),
            Err(reason) => Ok(Decision::Run(Ticket::Open(reason))),
        }
    }

    fn decide_id(&self, id: String) -> Result<Decision, StoreError> {
        if id::is_usable(&id) {
            self.decide_usable(id)
        } else {
            Ok(Decision::Run(Ticket::Open(FailOpen::Unusable)))
        }
    }
}

/// The guard of the world `plain`: a seen-set.
#[derive(Debug)]
pub struct Plain<S>(pub S);

impl<S: Store> Guard for Plain<S> {
    fn decide_usable(&self, id: String) -> Result<Decision, StoreError> {
        Ok(if self.0.seen(&id)? {
            Decision::Skip(id)
        } else {
            Decision::Run(Ticket::Seen(id))
        })
    }

    fn settle(&self, ticket: Ticket, outcome: Outcome) -> Result<Settled, StoreError> {
        match (ticket, outcome) {
            (Ticket::Seen(id) | Ticket::Leased(Leased { id, .. }), Outcome::Succeeded) => {
                remember(&self.0, &id)
            }
            _ => Ok(Settled::Nothing),
        }
    }

    fn renew(&self, ticket: Ticket) -> Result<Hold, StoreError> {
        Ok(match ticket {
            // There is nothing here that could hold a lease.
            Ticket::Leased(_) => Hold::Lost,
            Ticket::Open(_) | Ticket::Seen(_) => Hold::Held,
        })
    }

    fn forget(&self, id: &str) -> Result<(), StoreError> {
        forget(&self.0, id)
    }
}

/// The guard of the world `claiming`: a claim instead of a look.
#[derive(Debug)]
pub struct Claiming<S>(pub S);

impl<S: Store + Claims> Guard for Claiming<S> {
    fn decide_usable(&self, id: String) -> Result<Decision, StoreError> {
        Ok(match self.0.claim(&id)? {
            ClaimOutcome::Won(lease) => Decision::Run(Ticket::Leased(Leased { id, lease })),
            ClaimOutcome::Busy(left_ms) => Decision::Park(Parked { id, left_ms }),
            ClaimOutcome::Done => Decision::Skip(id),
        })
    }

    fn settle(&self, ticket: Ticket, outcome: Outcome) -> Result<Settled, StoreError> {
        match (ticket, outcome) {
            (Ticket::Leased(Leased { id, lease }), Outcome::Succeeded) => {
                must_be_usable(&id)?;
                Ok(match self.0.complete(&id, &lease.token)? {
                    Hold::Held => Settled::Marked,
                    Hold::Lost => Settled::MarkedLate,
                })
            }
            (Ticket::Leased(Leased { id, lease }), Outcome::Failed) => {
                must_be_usable(&id)?;
                Ok(match self.0.release(&id, &lease.token)? {
                    Hold::Held => Settled::Released,
                    Hold::Lost => Settled::LeaseLost,
                })
            }
            // Decided by a plain guard, before an upgrade.
            (Ticket::Seen(id), Outcome::Succeeded) => remember(&self.0, &id),
            (Ticket::Seen(_), Outcome::Failed) | (Ticket::Open(_), _) => Ok(Settled::Nothing),
        }
    }

    fn renew(&self, ticket: Ticket) -> Result<Hold, StoreError> {
        match ticket {
            Ticket::Leased(Leased { id, lease }) => {
                must_be_usable(&id)?;
                self.0.renew(&id, &lease.token)
            }
            Ticket::Open(_) | Ticket::Seen(_) => Ok(Hold::Held),
        }
    }

    fn forget(&self, id: &str) -> Result<(), StoreError> {
        forget(&self.0, id)
    }
}

/// Whether the named step of a delivery is to run now; the exported
/// interface `steps`.
///
/// # Errors
///
/// The store's own, or `rejected` for a name that is not `[a-z0-9_]{1,40}`.
pub fn once(store: &impl Marker, ticket: Ticket, step: &str) -> Result<bool, StoreError> {
    if !id::is_step(step) {
        return Err(StoreError::Rejected(String::from(
            "a step's name is 1 to 40 of a-z, 0-9 and _",
        )));
    }
    match ticket {
        Ticket::Open(_) => Ok(true),
        Ticket::Seen(id) | Ticket::Leased(Leased { id, .. }) => {
            must_be_usable(&id)?;
            store.set_once(&id, step)
        }
    }
}

fn remember(store: &impl Store, id: &str) -> Result<Settled, StoreError> {
    must_be_usable(id)?;
    store.remember(id)?;
    Ok(Settled::Marked)
}

fn forget(store: &impl Store, id: &str) -> Result<(), StoreError> {
    must_be_usable(id)?;
    store.forget(id)
}

/// A ticket comes from a decision, but nothing forces it to: a key that no
/// decision would ever ask for must not be written either. A runtime that
/// calls the core module itself may pass any bytes.
fn must_be_usable(id: &str) -> Result<(), StoreError> {
    if id::is_usable(id) && core::str::from_utf8(id.as_bytes()).is_ok() {
        Ok(())
    } else {
        Err(StoreError::Rejected(String::from(
            "not usable as an id: it must be 1 to 2048 bytes of UTF-8 without U+0000",
        )))
    }
}
