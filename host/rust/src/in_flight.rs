//! A delivery whose handler runs: keeps its lease alive and settles it once,
//! whichever way the handler ends.

use crate::context::Context;
use crate::detach::Detach;
use crate::error::Error;
use crate::guard::Guard;
use crate::processed::Mark;
use crate::types::{Hold, Leased, Outcome, Settled, Ticket};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

pub(crate) struct InFlight {
    guard: Guard,
    context: Context,
    /// Ends with this delivery.
    renewal: Option<AbortOnDropHandle<()>>,
    settled: bool,
}

impl InFlight {
    pub(crate) fn start(guard: &Guard, ticket: Ticket, replay: bool) -> Self {
        let lease_lost = CancellationToken::new();
        let renewal = match &ticket {
            Ticket::Leased(leased) => {
                let renewal = keep_alive(guard.clone(), leased.clone(), lease_lost.clone());
                let renewal = tokio::spawn(renewal.in_current_span());
                Some(AbortOnDropHandle::new(renewal))
            }
            Ticket::Open(_) | Ticket::Seen(_) => None,
        };
        Self {
            guard: guard.clone(),
            context: Context::new(guard.clone(), ticket, replay, lease_lost),
            renewal,
            settled: false,
        }
    }

    pub(crate) fn context(&self) -> Context {
        self.context.clone()
    }

    /// The handler has succeeded. From here on the mark is set whatever
    /// happens to the caller.
    pub(crate) async fn succeed(mut self) -> Mark {
        match self.settle(Outcome::Succeeded).await {
            Ok(Settled::MarkedLate) => Mark::SetLate,
            Ok(Settled::Nothing) => Mark::NoId,
            Ok(_) => Mark::Set,
            Err(error) => Mark::Missing(error),
        }
    }

    /// The handler has failed: nothing is marked, and a lease is given up, or
    /// lasts until it lapses.
    pub(crate) async fn fail(mut self) {
        drop(self.settle(Outcome::Failed).await);
    }

    async fn settle(&mut self, outcome: Outcome) -> Result<Settled, Error> {
        self.renewal = None;
        // What settles is on its way from the first poll on, also if this
        // future is dropped.
        self.settled = true;
        self.guard.settle(self.context.ticket(), outcome).await
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.settled && matches!(self.context.ticket(), Ticket::Leased(_)) {
            self.renewal = None;
            let (guard, context) = (self.guard.clone(), self.context.clone());
            drop(Detach::new(|_| async move {
                guard.settle(context.ticket(), Outcome::Failed).await
            }));
        }
    }
}

/// Renews a lease at a third of its length, until it is lost.
///
/// A store that does not answer is asked again; once the lease must have
/// lapsed by this machine's clock, it counts as lost.
async fn keep_alive(guard: Guard, leased: Leased, lost: CancellationToken) {
    let length = Duration::from_millis(leased.lease.length_ms);
    let id = leased.id.clone();
    let ticket = Ticket::Leased(leased);
    let mut ends = Instant::now() + length;
    loop {
        sleep(length / 3).await;
        let asked = Instant::now();
        match timeout_at(ends, guard.renew(&ticket)).await {
            Ok(Ok(Hold::Held)) => ends = asked + length,
            Ok(Ok(Hold::Lost)) => break,
            Ok(Err(error)) => {
                tracing::warn!(id, %error, "the lease could not be renewed");
                if Instant::now() >= ends {
                    break;
                }
            }
            Err(_elapsed) => break,
        }
    }
    tracing::warn!(id, "the lease is lost");
    lost.cancel();
}
