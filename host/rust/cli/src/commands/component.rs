//! `component`: the embedded component, for hosts of one's own.

use crate::exit::{Failure, Status};
use babelqueue_guard::component::artifacts;
use clap::ValueEnum;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;

/// Write the guard's WebAssembly component, its core module or its WIT
///
/// Any runtime that takes the component model can run the component; one that
/// does not can run the core module through the canonical ABI. The WIT says
/// what they import and export, and what holds for each function.
///
///   bq-guard component -o guard.wasm
///   bq-guard component claiming --core > claiming.core.wasm
///   bq-guard component --interface
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The world it is for: a plain seen-set, or one with claims and steps
    #[arg(value_enum, default_value_t = World::Plain)]
    world: World,
    /// Write the core module instead
    #[arg(long, group = "what")]
    core: bool,
    /// Write the WIT package instead
    #[arg(long, group = "what")]
    wit: bool,
    /// Print what the component imports and exports instead
    #[arg(long, group = "what")]
    interface: bool,
    /// Where to write; "-" or nothing for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum World {
    Plain,
    Claiming,
}

impl Args {
    pub fn run(self) -> Result<Status, Failure> {
        let component = match self.world {
            World::Plain => artifacts::PLAIN_COMPONENT,
            World::Claiming => artifacts::CLAIMING_COMPONENT,
        };
        if self.interface {
            self.write(interface(component)?.as_bytes())
        } else if self.wit {
            self.write(artifacts::WIT.as_bytes())
        } else if self.core {
            self.write_binary(match self.world {
                World::Plain => artifacts::PLAIN_CORE,
                World::Claiming => artifacts::CLAIMING_CORE,
            })
        } else {
            self.write_binary(component)
        }
    }

    fn write_binary(&self, bytes: &[u8]) -> Result<Status, Failure> {
        if self.file().is_none() && io::stdout().is_terminal() {
            return Err(Failure::usage(
                "not writing WebAssembly to a terminal: name a file by -o FILE, or see \
                 --interface for what is in it",
            ));
        }
        self.write(bytes)
    }

    fn write(&self, bytes: &[u8]) -> Result<Status, Failure> {
        match self.file() {
            Some(file) => std::fs::write(file, bytes)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
            None => {
                let mut out = io::stdout();
                out.write_all(bytes)?;
                out.flush()?;
            }
        }
        Ok(Status::Success)
    }

    fn file(&self) -> Option<&PathBuf> {
        self.output.as_ref().filter(|file| file.as_os_str() != "-")
    }
}

/// The imports and exports with their functions, a line each.
fn interface(component: &[u8]) -> Result<String, Failure> {
    let engine = Engine::default();
    let component = wasmtime::component::Component::new(&engine, component)
        .map_err(|error| Failure::stopped(format!("the embedded component: {error:#}")))?;
    let ty = component.component_type();
    let mut text = String::new();
    for (direction, name, item) in ty
        .imports(&engine)
        .map(|(name, item)| ("import", name, item))
        .chain(
            ty.exports(&engine)
                .map(|(name, item)| ("export", name, item)),
        )
    {
        let functions: Vec<_> = match &item.ty {
            ComponentItem::ComponentInstance(instance) => instance
                .exports(&engine)
                .filter(|(_, item)| matches!(item.ty, ComponentItem::ComponentFunc(_)))
                .map(|(function, _)| function)
                .collect(),
            _ => Vec::new(),
        };
        text += &format!("{direction} {name}");
        if !functions.is_empty() {
            text += &format!(": {}", functions.join(", "));
        }
        text.push('\n');
    }
    Ok(text)
}
