//! What a handler can know of the delivery it is handling.

use crate::error::Error;
use crate::guard::Guard;
use crate::types::{FailOpen, Ticket};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Given to the handler of a delivery. Clones are the same context.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    guard: Guard,
    ticket: Ticket,
    replay: bool,
    lease_lost: CancellationToken,
}

impl Context {
    pub(crate) fn new(
        guard: Guard,
        ticket: Ticket,
        replay: bool,
        lease_lost: CancellationToken,
    ) -> Self {
        Self(Arc::new(Inner {
            guard,
            ticket,
            replay,
            lease_lost,
        }))
    }

    /// The message's id, if it has a usable one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.ticket.id().ok()
    }

    /// Why the delivery failed open and is not deduplicated, if it did
    /// (contract, section 1).
    #[must_use]
    pub fn fail_open(&self) -> Option<FailOpen> {
        self.0.ticket.id().err()
    }

    /// Whether the delivery is a deliberate replay, so that effects outside
    /// which have already happened should be skipped (contract, section 6).
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.0.replay
    }

    /// Cancelled when the lease on this delivery is lost: another worker may
    /// be handling the message now. Never cancelled without a lease.
    #[must_use]
    pub fn lease_lost(&self) -> &CancellationToken {
        &self.0.lease_lost
    }

    /// Whether a named step of this message is to run now: true once, for an
    /// effect that may be lost rather than happen twice (contract, section
    /// 4). Its mark is set before this returns, and is not taken back if the
    /// step or the handler fails. Without a usable id it is always true.
    ///
    /// # Errors
    ///
    /// The name is not `[a-z0-9_]{1,40}`; the guard was given no store for
    /// steps, or one that keeps its marks for ever; or that store could not
    /// answer, in which case the step must not run, and is skipped by the next
    /// delivery if the mark was set after all.
    pub async fn once(&self, step: &str) -> Result<bool, Error> {
        self.0.guard.once(&self.0.ticket, step).await
    }

    pub(crate) fn ticket(&self) -> &Ticket {
        &self.0.ticket
    }
}
