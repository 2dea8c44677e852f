//! The values that the component, the stores and the caller exchange, as the
//! WIT interface `babelqueue:guard/types` defines and documents them.

pub use crate::bindings::babelqueue::guard::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, Parked, Settled, Ticket,
};
use std::fmt;

impl Ticket {
    /// The message's id, or why it has none.
    ///
    /// # Errors
    ///
    /// The reason why the delivery fails open.
    pub fn id(&self) -> Result<&str, FailOpen> {
        match self {
            Self::Open(reason) => Err(*reason),
            Self::Seen(id) | Self::Leased(Leased { id, .. }) => Ok(id),
        }
    }
}

impl Decision {
    /// The message's id, if it has a usable one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Run(ticket) => ticket.id().ok(),
            Self::Skip(id) => Some(id),
            Self::Park(parked) => Some(&parked.id),
        }
    }
}

impl FailOpen {
    /// The reason's name in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Absent => "absent",
            Self::Unusable => "unusable",
        }
    }
}

impl fmt::Display for FailOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
