//! What the queue and a worker say to each other, a JSON object a line.

use serde::{Deserialize, Serialize};

/// One hand-over of a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Delivery {
    pub(crate) number: u64,
    /// The envelope.
    pub(crate) body: String,
    /// How long the handler takes.
    pub(crate) work_ms: u64,
    /// Whether it fails in the end.
    pub(crate) fails: bool,
}

/// What became of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) number: u64,
    pub(crate) result: Result,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Result {
    /// The effect has happened, and is marked.
    Marked,
    /// The effect has happened, and the mark could not be written.
    Unmarked,
    Skipped,
    Failed,
    Parked {
        left_ms: u64,
    },
    Unavailable,
    /// What no fault of this rig may bring about.
    Refused(String),
}

impl Result {
    /// Whether the queue forgets the delivery.
    pub(crate) fn acknowledges(&self) -> bool {
        matches!(self, Self::Marked | Self::Unmarked | Self::Skipped)
    }
}
