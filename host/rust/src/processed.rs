//! What became of a delivery.

use crate::error::Error;
use crate::types::{FailOpen, Parked};

/// What [`Guard::process`](crate::Guard::process) did with a delivery whose
/// handler returns `Result<T, E>`.
#[derive(Debug)]
#[must_use]
pub enum Processed<T, E> {
    /// The handler ran and succeeded.
    Ran {
        /// What it returned.
        value: T,
        /// The message's id, or why the delivery failed open.
        id: Result<String, FailOpen>,
        /// Whether a redelivery will be recognised.
        mark: Mark,
    },
    /// The handler ran and failed. Nothing is recorded: a redelivery runs it
    /// again.
    Failed {
        /// What it returned.
        error: E,
        /// The message's id, or why the delivery failed open.
        id: Result<String, FailOpen>,
    },
    /// The message had been processed: the handler was not called.
    Skipped {
        /// The message's id.
        id: String,
    },
    /// Another delivery of the message is in progress: the handler was not
    /// called. This is not a failed attempt.
    Parked(Parked),
}

/// Whether the id of a success is now marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is.
    Set,
    /// It is, but the lease had been lost before: another delivery may have
    /// run meanwhile.
    SetLate,
    /// There was no usable id to mark.
    NoId,
    /// It is not, though the effect has happened: a redelivery may run again
    /// (contract, section 2). The delivery is to be acknowledged all the same.
    Missing(Error),
}

impl<T, E> Processed<T, E> {
    /// Whether to acknowledge the delivery. If not, it is to be delivered
    /// again: after a failure as the queue's own rules say, after
    /// [`Parked`](Self::Parked) without counting an attempt.
    #[must_use]
    pub fn acknowledge(&self) -> bool {
        matches!(self, Self::Ran { .. } | Self::Skipped { .. })
    }

    /// The message's id, if it has a usable one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Ran { id, .. } | Self::Failed { id, .. } => id.as_deref().ok(),
            Self::Skipped { id } => Some(id),
            Self::Parked(parked) => Some(&parked.id),
        }
    }

    /// Why the delivery failed open, if it did.
    #[must_use]
    pub fn fail_open(&self) -> Option<FailOpen> {
        match self {
            Self::Ran { id, .. } | Self::Failed { id, .. } => id.as_ref().err().copied(),
            Self::Skipped { .. } | Self::Parked(_) => None,
        }
    }
}
