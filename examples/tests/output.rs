//! Every example is run, and prints what stands in `expected/`.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, an example that does not run fails the test"
)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn prints_as_expected(name: &str, program: &str) {
    let expected = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
    let ran = Command::new(program).output().unwrap();
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
                let program = env!(concat!("CARGO_BIN_EXE_", stringify!($name)));
                prints_as_expected(stringify!($name), program);
            }
        )*
    };
}

examples!(embedder, own_store, scoring, walkthrough);

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
