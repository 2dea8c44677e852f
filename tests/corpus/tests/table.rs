//! The shared table is in order: written from its tables, and of the form that
//! `tests/README.md` describes.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, what is missing fails the test"
)]

use envelope_corpus::table;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::{env, fs};

fn json(file: &str) -> Value {
    serde_json::from_slice(&fs::read(table::folder().join(file)).unwrap()).unwrap()
}

#[test]
fn the_bodies_are_what_their_tables_make() {
    let script = table::folder().join("make_bodies");
    match Command::new("python3")
        .arg("-B")
        .arg(script)
        .arg("--check")
        .output()
    {
        Ok(checked) => {
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{said}");
        }
        Err(error) if env::var_os("CI").is_none() => eprintln!("skipped: no python3 here: {error}"),
        Err(error) => unreachable!("no python3 here: {error}"),
    }
}

#[test]
fn every_kind_of_verdict_has_many_bodies() {
    let cases = table::bodies();
    let usable = cases.iter().filter(|case| case.verdict.is_ok()).count();
    assert!(usable > 100 && cases.len() - usable > 300, "{usable}");
    let ids = table::given_ids();
    let usable = ids.iter().filter(|case| case.usable).count();
    assert!(usable > 20 && ids.len() - usable >= 8, "{usable}");
}

#[test]
fn every_text_of_the_ill_formed_is_ill_formed() {
    let cases = json("ids-ill-formed.json");
    for case in cases.as_array().unwrap() {
        let units = case["utf16"].as_array().unwrap().iter();
        let units: Vec<u16> = units
            .map(|unit| u16::from_str_radix(unit.as_str().unwrap(), 16).unwrap())
            .collect();
        assert!(String::from_utf16(&units).is_err(), "{case}");
    }
}

/// The runs and skips of a sequence follow from a set of ids alone; so does
/// the number of invocations.
#[test]
fn the_sequences_are_what_a_set_of_ids_makes_of_them() {
    let manifest = json("conformance/manifest.json");
    let sequences = &manifest["idempotency"]["sequences"]["cases"];
    let mut names = BTreeSet::new();
    for case in sequences.as_array().unwrap() {
        let (mut marked, mut effects) = (BTreeSet::new(), 0);
        for delivery in case["deliveries"].as_array().unwrap() {
            let id = delivery["meta_id"].as_str().unwrap();
            if delivery["forget_before"] == Value::Bool(true) {
                marked.remove(id);
            }
            let run = !marked.contains(id);
            let expected = if run { "run" } else { "skip" };
            assert_eq!(delivery["expect_effect"], expected, "{case}");
            effects += u64::from(run);
            let usable = (1..=2048).contains(&id.len()) && !id.contains('\0');
            if run && usable && delivery["outcome"] == "ok" {
                marked.insert(id);
            }
        }
        assert_eq!(case["expected_effects"], effects, "{case}");
        assert!(names.insert(case["name"].as_str().unwrap()), "{case}");
    }
    assert!(names.len() >= 20, "{names:?}");
}

#[test]
fn the_key_is_read_from_the_fixture() {
    let key = &json("conformance/manifest.json")["idempotency"]["dedup_key"];
    let file = table::folder().join("conformance");
    let body = fs::read(file.join(key["envelope_file"].as_str().unwrap())).unwrap();
    let id = envelope_corpus::reference(&body).unwrap();
    assert_eq!(key["expected_key"], id.as_str());
}
