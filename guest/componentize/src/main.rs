//! Turns a module that cargo built from `guest/component` into what is shipped.
//!
//! ```text
//! babelqueue-guard-componentize component guest.wasm plain.component.wasm
//! babelqueue-guard-componentize core      guest.wasm plain.core.wasm
//! ```
//!
//! `component` wraps the module as a WebAssembly component. `core` leaves it a
//! core module for runtimes without the component model, and refuses one that
//! needs more than such runtimes have in common.

use std::{env, fs, process::ExitCode};

use anyhow::{Context, Result, bail, ensure};
use wasm_encoder::{Module, RawSection};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};
use wit_component::ComponentEncoder;

const USAGE: &str = "usage: babelqueue-guard-componentize component|core INPUT OUTPUT";

/// What every import of the guest begins with. Anything else (WASI, `env`)
/// would ask of each host something that the contract does not name.
const OWN_PACKAGE: &str = "babelqueue:guard/";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [form, input, output] = arguments.as_slice() else {
        bail!(USAGE);
    };
    let module = fs::read(input).with_context(|| format!("cannot read {input}"))?;
    // Made for both forms: a core module is called by the same canonical ABI,
    // and this is what checks that its functions have the types of the world.
    let component = component_of(&module).with_context(|| format!("{input} is not the guest"))?;
    let artifact = match form.as_str() {
        "component" => component,
        "core" => core_of(&module).with_context(|| format!("{input} cannot be shipped as core"))?,
        _ => bail!(USAGE),
    };
    fs::write(output, artifact).with_context(|| format!("cannot write {output}"))
}

fn component_of(module: &[u8]) -> Result<Vec<u8>> {
    let module = keep_custom_sections(module, |name| name.starts_with("component-type"))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()
}

fn core_of(module: &[u8]) -> Result<Vec<u8>> {
    let module = keep_custom_sections(module, |_| false)?;
    // The compilers of Java's runtimes take no SIMD.
    let features = WasmFeatures::WASM2.difference(WasmFeatures::SIMD);
    Validator::new_with_features(features).validate_all(&module)?;
    Ok(module)
}

/// Copies `module` without those custom sections that `keep` refuses, and
/// checks on the way that it imports only what is ours.
fn keep_custom_sections(module: &[u8], keep: impl Fn(&str) -> bool) -> Result<Vec<u8>> {
    let mut copy = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        match &payload {
            Payload::CustomSection(section) if !keep(section.name()) => continue,
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    let import = import?;
                    ensure!(
                        import.module.starts_with(OWN_PACKAGE),
                        "it imports {}#{}, which no host provides",
                        import.module,
                        import.name,
                    );
                }
            }
            _ => {}
        }
        if let Some((id, range)) = payload.as_section() {
            let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
            let data = &module[range];
            copy.section(&RawSection { id, data });
        }
    }
    Ok(copy.finish())
}
