//! What an artifact asks of its host, and what it offers: exactly what the WIT
//! says. Its size, and whether it belongs to these sources.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, what is missing fails the test"
)]

use artifact_tests::{WORLDS, World, bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasmtime::{Engine, Module};
use wit_component::{DecodedWasm, OutputToString, WitPrinter, decode};
use wit_parser::{Resolve, WorldId, WorldItem};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The interfaces that a world imports or exports, each with its parts.
fn interfaces(
    resolve: &Resolve,
    world: WorldId,
    imports: bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let world = &resolve.worlds[world];
    let items = if imports {
        &world.imports
    } else {
        &world.exports
    };
    let texts = items.iter().map(|(key, item)| {
        let name = resolve.name_world_key(key);
        let WorldItem::Interface { id, .. } = item else {
            unreachable!("{name} is no interface")
        };
        let mut printer = WitPrinter::new(OutputToString::default());
        printer.emit_docs(false);
        printer.print_interface(resolve, *id).unwrap();
        (name, parts(&printer.output.to_string()))
    });
    texts.collect()
}

/// The functions and types of an interface, one by one. Gates are left out: a
/// component does not keep them.
fn parts(text: &str) -> BTreeSet<String> {
    let (mut parts, mut part) = (BTreeSet::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(used) = line.strip_prefix("use types.") {
            let names = used.split(['{', ',', ' ', '}', ';']);
            let names = names.filter(|name| !name.is_empty());
            parts.extend(names.map(|name| format!("use {name}")));
        } else if !line.is_empty() && !line.starts_with('@') {
            part += line;
            if part.matches('{').count() == part.matches('}').count() {
                parts.insert(mem::take(&mut part));
            }
        }
    }
    parts
}

fn of_the_wit(world: World, imports: bool) -> BTreeMap<String, BTreeSet<String>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root().join("wit")).unwrap();
    let id = resolve
        .select_world(&[package], Some(world.name()))
        .unwrap();
    interfaces(&resolve, id, imports)
}

fn of_the_component(world: World, imports: bool) -> BTreeMap<String, BTreeSet<String>> {
    match decode(&bytes(&format!("{}.component.wasm", world.name()))).unwrap() {
        DecodedWasm::Component(resolve, id) => interfaces(&resolve, id, imports),
        DecodedWasm::WitPackage(..) => unreachable!("no component but a package of WIT"),
    }
}

/// No import that the WIT does not name is no WASI, no clock, no randomness.
/// What a world never uses is left out of its component: a guard that claims
/// does not look, and one that does not claim knows no outcome of a claim.
#[test]
fn a_component_imports_what_its_world_does_and_nothing_else() {
    for (world, unused) in [
        (World::Plain, "variant claim-outcome"),
        (World::Claiming, "seen: func"),
    ] {
        let (wit, component) = (of_the_wit(world, true), of_the_component(world, true));
        assert!(component.keys().eq(wit.keys()), "{:?}", component.keys());
        for (interface, items) in wit {
            let found = &component[&interface];
            assert!(found.is_subset(&items), "{interface}: {found:?}");
            let mut missing = items.difference(found);
            assert!(missing.all(|item| item.starts_with(unused)), "{found:?}");
        }
    }
}

#[test]
fn a_component_exports_what_its_world_does_and_nothing_else() {
    for world in WORLDS {
        let (wit, component) = (of_the_wit(world, false), of_the_component(world, false));
        assert!(!wit.is_empty());
        assert_eq!(component, wit, "{world:?}");
    }
}

#[test]
fn a_core_module_imports_the_functions_of_its_world_and_nothing_else() {
    for world in WORLDS {
        let module = core_module(world);
        let imported: BTreeSet<_> = module
            .imports()
            .map(|import| (import.module().to_owned(), import.name().to_owned()))
            .collect();
        let mut expected: BTreeSet<_> = world
            .imports()
            .iter()
            .flat_map(|(interface, functions)| functions.iter().map(move |name| (interface, name)))
            .map(|(interface, name)| ((*interface).to_owned(), (*name).to_owned()))
            .collect();
        if world == World::Claiming {
            // A guard that claims does not look.
            expected.retain(|(_, name)| name != "seen");
        }
        assert_eq!(imported, expected);
    }
}

#[test]
fn a_core_module_exports_each_function_with_what_frees_its_result() {
    for world in WORLDS {
        let mut expected = BTreeSet::from(["memory", "cabi_realloc"].map(String::from));
        let mut functions = Vec::from(
            [
                "decide",
                "decide-text",
                "decide-id",
                "settle",
                "renew",
                "forget",
            ]
            .map(|name| format!("babelqueue:guard/guard@0.1.0#{name}")),
        );
        if world == World::Claiming {
            functions.push(String::from("babelqueue:guard/steps@0.1.0#once"));
        }
        for function in functions {
            expected.insert(format!("cabi_post_{function}"));
            expected.insert(function);
        }
        let module = core_module(world);
        let mut exported: BTreeSet<_> = module
            .exports()
            .map(|export| export.name().to_owned())
            .collect();
        // Two addresses that the linker adds; the bindings' own name for
        // `cabi_realloc`.
        exported.retain(|name| {
            !["__data_end", "__heap_base"].contains(&name.as_str())
                && !name.starts_with("cabi_realloc_")
        });
        assert_eq!(exported, expected);
    }
}

fn core_module(world: World) -> Module {
    let bytes = bytes(&format!("{}.core.wasm", world.name()));
    Module::new(&Engine::default(), bytes).unwrap()
}

/// Java's compilers take no SIMD, so the core modules have none.
#[test]
fn a_core_module_needs_no_simd() {
    let mut config = wasmtime::Config::new();
    config.wasm_relaxed_simd(false).wasm_simd(false);
    let engine = Engine::new(&config).unwrap();
    for world in WORLDS {
        let bytes = bytes(&format!("{}.core.wasm", world.name()));
        Module::validate(&engine, &bytes).unwrap();
    }
}

#[test]
fn a_component_has_at_most_25_600_bytes() {
    for world in WORLDS {
        let size = bytes(&format!("{}.component.wasm", world.name())).len();
        assert!(size <= 25_600, "{world:?}: {size}");
    }
}

#[test]
fn the_artifacts_belong_to_these_sources() {
    let script: &Path = &root().join("scripts/build-guest");
    let checked = Command::new(script).arg("--check").output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}
