//! What the guard tells whoever watches it: a span for each delivery, events
//! in it, and the [`counters`](crate::counters).

use crate::counters::{DELIVERIES, ERRORS, FAIL_OPEN, HANDLERS, LEASES_LOST, MARKS_MISSING, count};
use crate::error::Error;
use crate::types::{Decision, Outcome, Settled, Ticket};
use tracing::field::Empty;
use tracing::{Span, debug, error, info_span, warn};

/// How a handler has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Succeeded,
    Failed,
    Panicked,
    /// Its future was dropped.
    Cancelled,
}

/// The span of one delivery, from the decision to the mark.
pub(crate) fn span(id: Option<&str>, replay: bool) -> Span {
    info_span!(
        "delivery",
        id,
        replay,
        decision = Empty,
        fail_open = Empty,
        outcome = Empty,
    )
}

/// Within the delivery's span, if it has one.
pub(crate) fn decided(decision: &Result<Decision, Error>) {
    let span = Span::current();
    let name = match decision {
        Ok(Decision::Run(_)) => "run",
        Ok(Decision::Skip(_)) => "skip",
        Ok(Decision::Park(_)) => "park",
        Err(_) => "error",
    };
    span.record("decision", name);
    count(DELIVERIES, &[("decision", name)]);
    match decision {
        Ok(Decision::Run(Ticket::Open(reason))) => {
            span.record("fail_open", reason.as_str());
            count(FAIL_OPEN, &[("reason", reason.as_str())]);
            debug!(reason = reason.as_str(), "runs without an id");
        }
        Ok(Decision::Run(Ticket::Seen(id))) => debug!(id, "runs"),
        Ok(Decision::Run(Ticket::Leased(leased))) => debug!(id = leased.id, "runs"),
        Ok(Decision::Skip(id)) => debug!(id, "skipped"),
        Ok(Decision::Park(parked)) => debug!(id = parked.id, left_ms = parked.left_ms, "parked"),
        Err(error) => failed("decide", error),
    }
}

/// Within the delivery's span.
pub(crate) fn ended(ending: Ending) {
    let name = match ending {
        Ending::Succeeded => "succeeded",
        Ending::Failed => "failed",
        Ending::Panicked => "panicked",
        Ending::Cancelled => "cancelled",
    };
    Span::current().record("outcome", name);
    count(HANDLERS, &[("outcome", name)]);
}

pub(crate) fn settled(ticket: &Ticket, outcome: Outcome, settled: &Result<Settled, Error>) {
    let id = ticket.id().ok();
    match (settled, outcome) {
        (Ok(Settled::MarkedLate), _) => {
            count(LEASES_LOST, &[]);
            warn!(id, "marked after the lease was lost");
        }
        (Ok(Settled::LeaseLost), _) => {
            count(LEASES_LOST, &[]);
            debug!(id, "the lease was lost before the handler failed");
        }
        (Ok(Settled::Nothing | Settled::Marked | Settled::Released), _) => {}
        (Err(error), Outcome::Succeeded) => {
            count(MARKS_MISSING, &[]);
            failed("settle", error);
            error!(id, %error, "ran, but is not marked");
        }
        (Err(error), Outcome::Failed) => {
            failed("settle", error);
            warn!(id, %error, "the lease lasts until it lapses");
        }
    }
}

/// Counts the error, if it is one.
pub(crate) fn errors<T>(operation: &'static str, result: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &result {
        failed(operation, error);
    }
    result
}

fn failed(operation: &'static str, error: &Error) {
    let class = error.class();
    count(ERRORS, &[("operation", operation), ("class", class)]);
    debug!(operation, class, %error, "failed");
}
