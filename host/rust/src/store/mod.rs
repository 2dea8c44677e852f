//! Where it is recorded which ids have been processed.
//!
//! Three traits, by what a store can do. [`Store`] is enough for a guard;
//! [`Claims`] adds leases, [`Marker`] single steps. The `suite` feature brings
//! the suite that all stores of this crate pass, to be run against others.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod backoff;
pub mod inventory;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod tables;
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod token;
pub mod url;

use crate::error::StoreError;
use crate::types::{ClaimOutcome, Hold};
use async_trait::async_trait;
use std::sync::Arc;

pub use inventory::Inventory;

/// The seen-set (contract, section 2).
///
/// A store keeps ids apart byte for byte and never guesses: if it cannot
/// tell, it returns an error. Dropping one of these futures before it is
/// ready may leave the write done or not done, and nothing else.
///
/// ```
/// use babelqueue_guard::{Store, StoreError, async_trait};
/// use std::{collections::HashSet, sync::Mutex};
///
/// #[derive(Default)]
/// struct Forever(Mutex<HashSet<String>>);
///
/// impl Forever {
///     fn ids(&self) -> Result<std::sync::MutexGuard<'_, HashSet<String>>, StoreError> {
///         self.0.lock().map_err(|_| StoreError::Unavailable("a writer panicked".into()))
///     }
/// }
///
/// #[async_trait]
/// impl Store for Forever {
///     async fn seen(&self, id: &str) -> Result<bool, StoreError> {
///         Ok(self.ids()?.contains(id))
///     }
///     async fn remember(&self, id: &str) -> Result<(), StoreError> {
///         self.ids()?.insert(id.to_owned());
///         Ok(())
///     }
///     async fn forget(&self, id: &str) -> Result<(), StoreError> {
///         self.ids()?.remove(id);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Whether the id has a mark that has not expired; false for an id that
    /// is only leased.
    async fn seen(&self, id: &str) -> Result<bool, StoreError>;

    /// Sets the mark, or restarts the retention of the one that is there.
    async fn remember(&self, id: &str) -> Result<(), StoreError>;

    /// Removes the mark. No mark is no error; a live lease is not touched.
    async fn forget(&self, id: &str) -> Result<(), StoreError>;
}

/// Atomic claims (contract, section 3).
///
/// An id is absent, leased or marked, and a mark counts before a lease. Where
/// mark and lease are two records, a claim takes the lease first and looks for
/// the mark second; a completion writes the mark first and drops the lease
/// second. All times are the store's own.
#[async_trait]
pub trait Claims: Store {
    /// Takes the lease if the id is absent or its lease has lapsed. Each call
    /// makes a fresh token.
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError>;

    /// Extends a live lease of this token to its full length. Never revives
    /// one that has lapsed, never touches a mark.
    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError>;

    /// Sets the mark, whoever holds the lease, and drops the lease if the
    /// token owns it. [`Hold::Lost`] says that it was no longer ours.
    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError>;

    /// Drops the lease if the token owns it.
    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError>;
}

/// Single steps: marks set before an effect that may be lost rather than
/// happen twice (contract, section 4).
#[async_trait]
pub trait Marker: Send + Sync + 'static {
    /// Sets the step's mark together with its retention, in one atomic step
    /// that is sent once, and says whether this call set it.
    ///
    /// Steps need a retention: a store that keeps its marks for ever answers
    /// [`StoreError::Rejected`], and sends nothing.
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError>;
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn seen(&self, id: &str) -> Result<bool, StoreError> {
        (**self).seen(id).await
    }
    async fn remember(&self, id: &str) -> Result<(), StoreError> {
        (**self).remember(id).await
    }
    async fn forget(&self, id: &str) -> Result<(), StoreError> {
        (**self).forget(id).await
    }
}

#[async_trait]
impl<S: Claims + ?Sized> Claims for Arc<S> {
    async fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        (**self).claim(id).await
    }
    async fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        (**self).renew(id, token).await
    }
    async fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        (**self).complete(id, token).await
    }
    async fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        (**self).release(id, token).await
    }
}

#[async_trait]
impl<S: Marker + ?Sized> Marker for Arc<S> {
    async fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        (**self).set_once(id, step).await
    }
}
