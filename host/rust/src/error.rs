//! The errors of a delivery that could be neither run nor skipped
//! (contract, section 7).

use crate::bindings::babelqueue::guard::types as wit;

/// Why a store gave no answer.
///
/// The text is for a person: it names the store and says what was tried, and
/// never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Not reachable, timed out, loading, read-only, failing over. Retrying
    /// the delivery later is right.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// Reached, and refused for a reason that time does not mend: wrong
    /// credentials, a wrong type under the key, a key the store cannot hold, a
    /// missing table. An operator has to act; the text says on what.
    #[error("store rejected the request: {0}")]
    Rejected(String),
}

impl StoreError {
    /// Whether trying again later can help without anybody acting.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<wit::StoreError> for StoreError {
    fn from(error: wit::StoreError) -> Self {
        match error {
            wit::StoreError::Unavailable(text) => Self::Unavailable(text),
            wit::StoreError::Rejected(text) => Self::Rejected(text),
        }
    }
}

/// Why a delivery was not decided.
///
/// The handler has not been called, and the delivery must not be
/// acknowledged: the state is never guessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The component could not decide.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl Error {
    /// The class in the contract: `unavailable`, `rejected` or `guard`.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Store(StoreError::Unavailable(_)) => "unavailable",
            Self::Store(StoreError::Rejected(_)) => "rejected",
            Self::Guard(_) => "guard",
        }
    }
}

/// The component itself could not decide. The next delivery is decided
/// normally.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The body is longer than the guard was set to take.
    #[error(
        "the body has {len} bytes, the limit is {limit}: raise the limit of the guard's component \
         if bodies of this size are expected"
    )]
    BodyTooLarge {
        /// Bytes in the body.
        len: usize,
        /// The limit in force, in bytes.
        limit: usize,
    },
    /// The component trapped, ran out of memory or overran its deadline. Its
    /// instance has been thrown away.
    #[error("the component trapped: {0}")]
    Trap(String),
    /// The component cannot be used at all: it is no component, or lacks an
    /// export or wants an import that the WIT package does not have.
    #[error("the component cannot be loaded: {0}")]
    Component(String),
    /// The guard was used in a way that its component or store has no part
    /// for, such as a step where no store for steps was given.
    #[error("{0}")]
    Misuse(String),
}
