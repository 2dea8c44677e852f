//! What the guard tells whoever watches it: a span for each delivery, events
//! in it, and the [`counters`](crate::counters).

use crate::counters::{DELIVERIES, ERRORS, FAIL_OPEN, HANDLERS, LEASES_LOST, MARKS_MISSING, count};
use crate::error::Error;
use crate::processed::Processed;
use crate::types::{Decision, FailOpen, Outcome, Parked, Settled, Ticket};
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

/// Within the delivery's span: its body has been read.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn identified(id: Option<&str>) {
    Span::current().record("id", id);
}

/// What a delivery came to before its handler, if any, was called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict<'a> {
    Run(Result<&'a str, FailOpen>),
    Skip(&'a str),
    Park(&'a Parked),
}

impl<'a> From<&'a Decision> for Verdict<'a> {
    fn from(decision: &'a Decision) -> Self {
        match decision {
            Decision::Run(ticket) => Self::Run(ticket.id()),
            Decision::Skip(id) => Self::Skip(id),
            Decision::Park(parked) => Self::Park(parked),
        }
    }
}

impl<'a, T, E> From<&'a Processed<T, E>> for Verdict<'a> {
    fn from(processed: &'a Processed<T, E>) -> Self {
        match processed {
            Processed::Ran { id, .. } | Processed::Failed { id, .. } => {
                Self::Run(id.as_deref().map_err(|reason| *reason))
            }
            Processed::Skipped { id } => Self::Skip(id),
            Processed::Parked(parked) => Self::Park(parked),
        }
    }
}

/// Within the delivery's span, if it has one: `operation` has come to a
/// decision, or to none.
pub(crate) fn decided<'a, V>(operation: &'static str, decision: &'a Result<V, Error>)
where
    &'a V: Into<Verdict<'a>>,
{
    let verdict = decision.as_ref().map(Into::into);
    let name = match &verdict {
        Ok(Verdict::Run(_)) => "run",
        Ok(Verdict::Skip(_)) => "skip",
        Ok(Verdict::Park(_)) => "park",
        Err(_) => "error",
    };
    let span = Span::current();
    span.record("decision", name);
    count(DELIVERIES, &[("decision", name)]);
    match verdict {
        Ok(Verdict::Run(Ok(id))) => debug!(id, "runs"),
        Ok(Verdict::Run(Err(reason))) => {
            let reason = reason.as_str();
            span.record("fail_open", reason);
            count(FAIL_OPEN, &[("reason", reason)]);
            debug!(reason, "runs without an id");
        }
        Ok(Verdict::Skip(id)) => debug!(id, "skipped"),
        Ok(Verdict::Park(parked)) => debug!(id = parked.id, left_ms = parked.left_ms, "parked"),
        Err(error) => failed(operation, error),
    }
}

/// A handler under way, within the delivery's span.
#[derive(Debug)]
pub(crate) struct Handling(Ending);

impl Handling {
    /// Unless it is said how it ended, it was cancelled, or it panicked.
    pub(crate) fn begin() -> Self {
        Self(Ending::Cancelled)
    }

    pub(crate) fn ended(mut self, ending: Ending) {
        self.0 = ending;
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        let outcome = match self.0 {
            Ending::Succeeded => "succeeded",
            Ending::Failed => "failed",
            Ending::Cancelled if !std::thread::panicking() => "cancelled",
            Ending::Cancelled | Ending::Panicked => "panicked",
        };
        Span::current().record("outcome", outcome);
        count(HANDLERS, &[("outcome", outcome)]);
    }
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
