//! Decides on the 250-byte envelope as often as told, for counting the
//! instructions of one decision: the difference between two runs of different
//! length is free of everything that happens once.
//!
//! The component is compiled for generic x86-64, so that the count does not
//! depend on the machine.

use babelqueue_guard::component::{Limits, artifacts};
use babelqueue_guard::drive::Asked;
use babelqueue_guard::{Component, Delivery};
use guard_benches::{SeenSet, bodies};
use std::error::Error;
use wasmtime::{Config, Engine};

fn main() -> Result<(), Box<dyn Error>> {
    let times: u32 = std::env::args()
        .nth(1)
        .ok_or("say how many decisions")?
        .parse()?;
    let mut config = Config::new();
    config.concurrency_support(false);
    config.target("x86_64-unknown-linux-gnu")?;
    let compiled = Engine::new(&config)?.precompile_component(artifacts::PLAIN_COMPONENT)?;
    // SAFETY: compiled a line ago.
    let component = unsafe { Component::from_precompiled(&compiled, Limits::TRUSTED) }?;
    let (set, bodies) = (SeenSet::default(), bodies());
    let body = bodies.first().ok_or("there is a first body")?;
    for _ in 0..times {
        match component.ask(&Delivery::from_body(&body.bytes))? {
            Asked::Seen { id, .. } if !set.contains(&id) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(())
}
