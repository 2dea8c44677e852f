//! One line through the guard.

use super::effect::{Effect, Unsuccessful};
use super::lines::Line;
use super::stop::Stop;
use crate::output::{Decided, Ended, LineReport};
use babelqueue_guard::{Error, FailOpen, Guard, GuardError, Mark, Processed, StoreError};
use std::time::Duration;

/// What became of a line.
pub struct Handled {
    pub report: LineReport,
    pub next: Next,
}

/// What follows from it.
pub enum Next {
    /// The line is handled.
    Done,
    /// Another delivery is being handled: the line is to be tried again, when
    /// this long has passed at the latest.
    Again { left: Duration },
    /// The line cannot be handled, which says nothing about others.
    GiveUp,
    /// The line is not handled, and no other would be.
    Stop(Stop),
}

/// Has the line decided on, and run if it is to run.
pub async fn handle(guard: &Guard, effect: &Effect, line: &Line) -> Handled {
    let handler = async |context| effect.happen(line, &context).await;
    let mut report = LineReport {
        n: line.n,
        ..LineReport::default()
    };
    let next = match guard.process(line.body(), handler).await {
        Ok(processed) => settled(processed, &mut report),
        Err(error) => undecided(&error, &mut report),
    };
    Handled { report, next }
}

/// A line over the limit was not even read.
pub fn too_long(n: u64, len: usize, limit: usize) -> Handled {
    let error = format!(
        "guard: the line has {len} bytes, the limit is {limit}: raise it by --max-body if this is \
         an envelope"
    );
    Handled {
        report: LineReport {
            n,
            error: Some(error),
            ..LineReport::default()
        },
        next: Next::GiveUp,
    }
}

fn settled(processed: Processed<(), Unsuccessful>, report: &mut LineReport) -> Next {
    match processed {
        Processed::Ran { id, mark, .. } => {
            ran(id, Ended::Succeeded, report);
            report.marked = matches!(mark, Mark::Set | Mark::SetLate);
            report.error = match mark {
                Mark::Set | Mark::NoId => None,
                Mark::SetLate => {
                    Some("late: the lease was lost before; another worker may have run it".into())
                }
                Mark::Missing(error) => Some(classified(&error)),
            };
            Next::Done
        }
        Processed::Failed { id, error } => {
            ran(id, Ended::Failed, report);
            let (class, text, next) = match error {
                Unsuccessful::Failed(how) => ("command", how, Next::Done),
                Unsuccessful::CannotStart(why) => (
                    "command",
                    why.to_string(),
                    Next::Stop(Stop::CannotStart(why)),
                ),
                Unsuccessful::ReaderGone => {
                    ("output", "closed".into(), Next::Stop(Stop::ReaderGone))
                }
                Unsuccessful::CannotWrite(error) => {
                    let text = error.to_string();
                    ("output", text.clone(), Next::Stop(Stop::CannotWrite(text)))
                }
            };
            report.error = Some(format!("{class}: {text}"));
            next
        }
        Processed::Skipped { id } => {
            report.id = Some(id);
            report.decision = Decided::Skip;
            Next::Done
        }
        Processed::Parked(parked) => {
            report.id = Some(parked.id);
            report.decision = Decided::Park;
            Next::Again {
                left: Duration::from_millis(parked.left_ms),
            }
        }
    }
}

fn ran(id: Result<String, FailOpen>, outcome: Ended, report: &mut LineReport) {
    report.decision = Decided::Run;
    report.outcome = Some(outcome);
    match id {
        Ok(id) => report.id = Some(id),
        Err(reason) => report.reason = Some(reason.as_str()),
    }
}

fn undecided(error: &Error, report: &mut LineReport) -> Next {
    report.decision = Decided::Error;
    report.error = Some(classified(error));
    match error {
        // Of this one body. The next one is decided normally.
        Error::Guard(GuardError::BodyTooLarge { .. } | GuardError::Trap(_)) => Next::GiveUp,
        Error::Guard(error) => Next::Stop(Stop::Guard(error.to_string())),
        Error::Store(error) => Next::Stop(Stop::Store(error.to_string())),
    }
}

/// `CLASS: text`.
fn classified(error: &Error) -> String {
    let class = error.class();
    match error {
        Error::Store(StoreError::Unavailable(text) | StoreError::Rejected(text)) => {
            format!("{class}: {text}")
        }
        Error::Guard(error) => format!("{class}: {error}"),
    }
}
