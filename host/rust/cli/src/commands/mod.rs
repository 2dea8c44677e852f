//! One file a command.

pub mod completions;
pub mod component;
pub mod conformance;
pub mod demo;
pub mod forget;
pub mod gc;
pub mod id;
pub mod inspect;
pub mod list;
pub mod migrate;
pub mod remember;
pub mod run;
pub mod seen;
pub mod stats;

use crate::exit::Failure;
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Delivery};

/// An id from the command line, if it is usable as one.
fn usable(id: &str) -> Result<&str, Failure> {
    match Component::plain()?.ask(&Delivery::from_id(id))? {
        Asked::Decided(_) => Err(Failure::usage(
            "this is not usable as an id: an id has 1 to 2048 bytes. A message with such an id \
             runs each time it is delivered, and is never marked",
        )),
        Asked::Seen { .. } | Asked::Claim { .. } => Ok(id),
    }
}
