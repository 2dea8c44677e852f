//! The decision of babelqueue-guard, as plain Rust: which id a message has,
//! and what is to be done with its delivery.
//!
//! This crate is what the WebAssembly components are compiled from. It knows
//! no clock, no randomness and no I/O; a store is whatever implements
//! [`Store`], [`Claims`] and [`Marker`].
//!
//! - [`mod@extract`] reads the id from a body (contract, section 1),
//! - [`mod@guard`] decides and settles (sections 2 to 4),
//! - [`mod@types`] mirrors the WIT interface of the same name.

#![no_std]
#![forbid(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod blocks;
pub mod extract;
pub mod guard;
pub mod id;
mod scanner;
pub mod types;

pub use extract::extract;
pub use guard::{Claiming, Claims, Guard, Marker, Plain, Store, once};
