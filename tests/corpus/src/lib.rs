//! The bodies that the extraction is tested on, natively and through the built
//! modules, and a slow reference that says what is right.
//!
//! - [`table`] reads `tests/cases`, which every host shares,
//! - [`generate`] makes as many bodies more as are wanted, the same ones each
//!   time from the same seed,
//! - [`reference`](mod@reference) reads the contract's section 1 to the
//!   letter and knows nothing of the guest,
//! - [`recording`] is a store that writes down what it was asked.

pub mod generate;
pub mod recording;
pub mod reference;
pub mod table;

pub use generate::{Bodies, count};
pub use reference::{Reason, reference};
