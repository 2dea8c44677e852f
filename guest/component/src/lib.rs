//! The components: the logic of `babelqueue-guard-logic` behind the exports
//! of a WIT world, asking the store that the world imports.
//!
//! The feature `plain` or `claiming` chooses the world. The module imports
//! nothing else: no WASI, no clock, no randomness.

#![no_std]

extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod bump;

use alloc::string::String;
use alloc::vec::Vec;
use babelqueue_guard_logic::types::{
    Decision, FailOpen, Hold, Outcome, Settled, StoreError, Ticket,
};
use babelqueue_guard_logic::{Guard as _, id};
use bindings::babelqueue::guard as imports;
use bindings::exports::babelqueue::guard as exports;

#[cfg(feature = "plain")]
use babelqueue_guard_logic::Plain as Mode;

#[cfg(feature = "claiming")]
use babelqueue_guard_logic::{Claiming as Mode, types::ClaimOutcome};

#[cfg(all(feature = "plain", feature = "claiming"))]
compile_error!("a component is made for one world: choose `plain` or `claiming`");

mod bindings {
    #[cfg(feature = "plain")]
    wit_bindgen::generate!({
        path: "../../wit",
        world: "plain",
        with: { "babelqueue:guard/types@0.1.0": babelqueue_guard_logic::types },
    });

    #[cfg(feature = "claiming")]
    wit_bindgen::generate!({
        path: "../../wit",
        world: "claiming",
        with: { "babelqueue:guard/types@0.1.0": babelqueue_guard_logic::types },
    });
}

/// Whatever store the host has linked.
struct Imported;

impl babelqueue_guard_logic::Store for Imported {
    fn seen(&self, id: &str) -> Result<bool, StoreError> {
        imports::store::seen(id)
    }

    fn remember(&self, id: &str) -> Result<(), StoreError> {
        imports::store::remember(id)
    }

    fn forget(&self, id: &str) -> Result<(), StoreError> {
        imports::store::forget(id)
    }
}

#[cfg(feature = "claiming")]
impl babelqueue_guard_logic::Claims for Imported {
    fn claim(&self, id: &str) -> Result<ClaimOutcome, StoreError> {
        imports::claims::claim(id)
    }

    fn renew(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        imports::claims::renew(id, token)
    }

    fn complete(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        imports::claims::complete(id, token)
    }

    fn release(&self, id: &str, token: &str) -> Result<Hold, StoreError> {
        imports::claims::release(id, token)
    }
}

#[cfg(feature = "claiming")]
impl babelqueue_guard_logic::Marker for Imported {
    fn set_once(&self, id: &str, step: &str) -> Result<bool, StoreError> {
        imports::marker::set_once(id, step)
    }
}

struct Component;

const GUARD: Mode<Imported> = Mode(Imported);

impl exports::guard::Guest for Component {
    fn decide(envelope: Vec<u8>) -> Result<Decision, StoreError> {
        GUARD.decide(&envelope)
    }

    fn decide_text(envelope: String) -> Result<Decision, StoreError> {
        GUARD.decide(envelope.as_bytes())
    }

    fn decide_id(id: String) -> Result<Decision, StoreError> {
        // A runtime that calls the core module itself may pass any bytes.
        match id::from_bytes(id.into_bytes()) {
            Some(id) => GUARD.decide_usable(id),
            None => Ok(Decision::Run(Ticket::Open(FailOpen::Unusable))),
        }
    }

    fn settle(ticket: Ticket, outcome: Outcome) -> Result<Settled, StoreError> {
        GUARD.settle(ticket, outcome)
    }

    fn renew(ticket: Ticket) -> Result<Hold, StoreError> {
        GUARD.renew(ticket)
    }

    fn forget(id: String) -> Result<(), StoreError> {
        GUARD.forget(&id)
    }
}

#[cfg(feature = "claiming")]
impl exports::steps::Guest for Component {
    fn once(ticket: Ticket, step: String) -> Result<bool, StoreError> {
        babelqueue_guard_logic::once(&Imported, ticket, &step)
    }
}

bindings::export!(Component with_types_in bindings);

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn trap(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
