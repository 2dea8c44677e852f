//! A host of one's own, with no crate of this project: wasmtime, the checked-in
//! component, and a store linked straight to what it imports.

#![allow(missing_docs, unreachable_pub, reason = "in what bindgen generates")]

use babelqueue::guard::{store, types::StoreError};
use exports::babelqueue::guard::guard::{Decision, Outcome};
use std::collections::HashSet;
use std::{env, fs, io, path::PathBuf};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

wasmtime::component::bindgen!({ path: "../wit", world: "plain" });

const GUARD: &[u8] = include_bytes!("../guest/artifacts/plain.component.wasm");

fn consume(engine: &Engine, marks: impl store::Host + 'static) -> wasmtime::Result<()> {
    let component = Component::new(engine, GUARD)?;
    let mut linker = Linker::new(engine);
    store::add_to_linker::<_, HasSelf<_>>(&mut linker, |marks| marks)?;
    let mut marks = Store::new(engine, marks);
    let plain = Plain::instantiate(&mut marks, &component, &linker)?;
    let guard = plain.babelqueue_guard_guard();
    for id in ["parcel-1", "parcel-2", "parcel-1"] {
        let body = format!(r#"{{"job":"urn:babel:parcels:packed","meta":{{"id":"{id}"}}}}"#);
        match guard.call_decide(&mut marks, body.as_bytes())?? {
            Decision::Run(ticket) => {
                println!("  {id}: run");
                guard.call_settle(&mut marks, &ticket, Outcome::Succeeded)??;
            }
            Decision::Skip(id) => println!("  {id}: skip"),
            Decision::Park(_) => println!("  {id}: park"),
        }
    }
    Ok(())
}

impl store::Host for HashSet<String> {
    fn seen(&mut self, id: String) -> Result<bool, StoreError> {
        Ok(self.contains(&id))
    }
    fn remember(&mut self, id: String) -> Result<(), StoreError> {
        self.insert(id);
        Ok(())
    }
    fn forget(&mut self, id: String) -> Result<(), StoreError> {
        self.remove(&id);
        Ok(())
    }
}

/// A text file with a line for each id, quoted, since an id may hold anything.
struct Lines(PathBuf);

impl Lines {
    fn read(&self) -> Result<String, StoreError> {
        match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other.map_err(|error| self.unavailable(&error)),
        }
    }
    fn write(&self, lines: &str) -> Result<(), StoreError> {
        fs::write(&self.0, lines).map_err(|error| self.unavailable(&error))
    }
    fn unavailable(&self, error: &io::Error) -> StoreError {
        StoreError::Unavailable(format!("{}: {error}", self.0.display()))
    }
}

impl store::Host for Lines {
    fn seen(&mut self, id: String) -> Result<bool, StoreError> {
        let line = format!("{id:?}");
        Ok(self.read()?.lines().any(|known| known == line))
    }
    fn remember(&mut self, id: String) -> Result<(), StoreError> {
        self.write(&format!("{}{id:?}\n", self.read()?))
    }
    fn forget(&mut self, id: String) -> Result<(), StoreError> {
        self.write(&self.read()?.replace(&format!("{id:?}\n"), ""))
    }
}

fn main() -> wasmtime::Result<()> {
    let engine = Engine::default();
    println!("over a set:");
    consume(&engine, HashSet::new())?;

    let path = env::temp_dir().join(format!("guard-embedder-{}.txt", std::process::id()));
    println!("over a file:");
    consume(&engine, Lines(path.clone()))?;
    println!("over the same file again:");
    consume(&engine, Lines(path.clone()))?;
    fs::remove_file(path)?;
    Ok(())
}
