//! Makes the effect of a message happen once when its queue delivers it
//! twice.
//!
//! Every queue delivers at least once: a worker dies before it acknowledges,
//! a broker's timeout lapses, an operator replays. A [`Guard`] reads the
//! message's id (`meta.id` of the BabelQueue envelope), asks a [`Store`]
//! whether that id was processed, and runs the handler or skips it. After a
//! success, and only then, the id is remembered.
//!
//! ```
//! use babelqueue_guard::{Guard, MemoryStore, Processed};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = Guard::new(MemoryStore::default())?;
//! let body = br#"{"job":"urn:babel:orders:created","data":{"order_id":1042},
//!                 "meta":{"id":"f1e2d3c4-b5a6-4789-90ab-cdef01234567"}}"#;
//!
//! let charge = async |_context| Ok::<_, std::io::Error>("charged");
//!
//! let first = guard.process(&body[..], charge).await?;
//! assert!(matches!(first, Processed::Ran { value: "charged", .. }));
//!
//! let again = guard.process(&body[..], charge).await?;
//! assert!(matches!(again, Processed::Skipped { .. }));
//! assert!(again.acknowledge());
//! # Ok(())
//! # }
//! ```
//!
//! The decision is made by a WebAssembly [`Component`], the same one that the
//! guard's packages for other languages run, so that a message handled by one
//! of them is skipped by all others. The contract is in the project's
//! `docs/contract.md`; its sections are named throughout.

#![forbid(unsafe_op_in_unsafe_fn)]

pub mod component;
mod context;
pub mod counters;
mod delivery;
mod detach;
pub mod drive;
mod error;
mod guard;
mod in_flight;
mod processed;
pub mod settings;
pub mod store;
#[cfg(feature = "suite")]
pub mod suite;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod transaction;
mod types;
mod watch;

pub use async_trait::async_trait;
pub use component::Component;
pub use context::Context;
pub use delivery::{Delivery, REPLAY_HEADER};
pub use error::{Error, GuardError, StoreError};
pub use guard::Guard;
pub use processed::{Mark, Processed};
/// The crate whose clients the store on Redis takes.
#[cfg(feature = "redis")]
pub use redis;
/// The crate whose pools and transactions the stores in databases take.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use sqlx;
pub use store::memory::MemoryStore;
pub use store::{Claims, Inventory, Marker, Store};
pub use types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, Parked, Settled, Ticket,
};

#[allow(
    missing_docs,
    clippy::pedantic,
    reason = "generated; what is public of it is documented in the WIT package"
)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "claiming",
        additional_derives: [PartialEq, Eq],
    });
}
