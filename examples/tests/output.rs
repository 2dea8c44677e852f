//! Every example is run, and prints what stands in `expected/`.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, an example that does not run fails the test"
)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

const POSTGRES: &str = "BQ_GUARD_POSTGRES";

fn prints_as_expected(name: &str, program: &mut Command) {
    let expected = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
    let ran = program.output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{name}: {}: {errors}", ran.status);
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(printed, fs::read_to_string(expected).unwrap(), "{name}");
}

macro_rules! examples {
    ($($name:ident),*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                let mut program = Command::new(env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
                prints_as_expected(stringify!($name), program.env_remove(POSTGRES));
            }
        )*
    };
}

examples!(embedder, own_store, payment, scoring, walkthrough);

#[test]
fn payment_in_postgresql() {
    let Some(server) = test_servers::postgres() else {
        return;
    };
    let url = server.url(&server.create_database(""));
    let mut program = Command::new(env!("CARGO_BIN_EXE_payment"));
    prints_as_expected("payment", program.env(POSTGRES, url));
}

/// No example is left out here or in the table.
#[test]
fn every_example_is_run_and_in_the_table() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, NAMES);
    let table = fs::read_to_string(folder.join("README.md")).unwrap();
    for name in names {
        assert!(table.contains(&format!("[{name}.rs]({name}.rs)")), "{name}");
    }
}
