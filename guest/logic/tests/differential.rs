//! The scanner against the slow reference, and against `serde_json` where the
//! two must agree, over generated and changed bodies.
//!
//! `BQ_GUARD_CASES=1000000` looks at a million of them.

#![allow(
    clippy::panic,
    reason = "also outside of test functions, a failed test is what is wanted"
)]

use babelqueue_guard_logic::extract;
use babelqueue_guard_logic::types::FailOpen;
use envelope_corpus::{Bodies, Reason, count, reference, table};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

fn verdict(body: &[u8]) -> Result<String, Reason> {
    extract(body).map_err(|reason| match reason {
        FailOpen::Malformed => Reason::Malformed,
        FailOpen::Absent => Reason::Absent,
        FailOpen::Unusable => Reason::Unusable,
    })
}

fn agree(body: &[u8]) -> Result<String, Reason> {
    let (ours, right) = (verdict(body), reference(body));
    assert_eq!(ours, right, "on the body {}", body.escape_ascii());
    ours
}

#[test]
fn generated_bodies_agree_with_the_reference() {
    let wanted = count(20_000);
    let mut seen: BTreeMap<Option<Reason>, usize> = BTreeMap::new();
    for body in Bodies::new(1).take(wanted) {
        *seen.entry(agree(&body).err()).or_default() += 1;
    }
    // Were nearly all of them malformed, the agreement would mean little.
    for verdict in [
        None,
        Some(Reason::Malformed),
        Some(Reason::Absent),
        Some(Reason::Unusable),
    ] {
        let share = seen.get(&verdict).copied().unwrap_or(0);
        assert!(share * 20 >= wanted, "too few of {verdict:?} in {seen:?}");
    }
}

/// Every byte at every place of a short envelope, put in and put in place of
/// another; and every byte taken away.
#[test]
fn every_change_of_one_byte_agrees_with_the_reference() {
    let bodies: [&[u8]; 4] = [
        br#"{"meta":{"id":"a\u00e9"}}"#,
        br#" {"n" : [-1.5e+3, true, {}] ,"meta":{"id":"x"}} "#,
        b"{\"m\\u0065ta\":{\"id\":\"\\ud83d\\udce6\xc3\xa9\"},\"a\":[[]]}",
        br#"{"meta":{"id":null,"id":"0123456789abcdef"},"b":{"c":"0123456789abcdefgh"}}"#,
    ];
    for body in bodies {
        for at in 0..body.len() {
            let mut shorter = body.to_vec();
            shorter.remove(at);
            let _ = agree(&shorter);
            for byte in 0..=255 {
                let mut other = body.to_vec();
                other[at] = byte;
                let _ = agree(&other);
                other[at] = body[at];
                other.insert(at, byte);
                let _ = agree(&other);
            }
        }
    }
}

/// Every byte at every place of blocks of 16, in the id and in white space.
#[test]
fn every_byte_at_every_offset_of_a_block_agrees_with_the_reference() {
    for offset in 0..40 {
        for byte in 0..=255 {
            for behind in [0, 1, 15, 16, 40] {
                let byte = [byte];
                let text = [&vec![b't'; offset], &byte[..], &vec![b'u'; behind]].concat();
                let _ = agree(&[b"{\"meta\":{\"id\":\"", &text[..], b"\"}}"].concat());
                let space = [&vec![b' '; offset], &byte[..], &vec![b'\n'; behind]].concat();
                let _ = agree(&[b"{\"meta\":", &space[..], b"{\"id\":\"x\"}}"].concat());
            }
        }
    }
}

/// Every pair of code units around the surrogates, as escapes in an id.
#[test]
fn every_meeting_of_surrogates_agrees_with_the_reference() {
    let units = [
        0x0000, 0x0041, 0xd7ff, 0xd800, 0xd83d, 0xdbff, 0xdc00, 0xdce6, 0xdfff, 0xe000, 0xffff,
    ];
    for first in units {
        for second in units {
            for third in units {
                let id = format!("\\u{first:04x}\\u{second:04X}\\u{third:04x}");
                let _ = agree(format!(r#"{{"meta":{{"id":"{id}"}}}}"#).as_bytes());
            }
        }
    }
}

/// Any depth: beyond what a parser that recurses could bear.
#[test]
fn a_million_levels_agree_with_the_reference() {
    for (open, close) in [("[", "]"), ("{\"\":", "}"), ("[{\"\":[", "]}]")] {
        let levels = 1_000_000 / open.len();
        let deep = open.repeat(levels) + "0" + &close.repeat(levels);
        let body = format!(r#"{{"a":{deep},"meta":{{"id":"x"}}}}"#);
        assert_eq!(agree(body.as_bytes()), Ok(String::from("x")));
        assert_eq!(
            agree(&body.as_bytes()[..body.len() - 30]),
            Err(Reason::Malformed)
        );
    }
}

fn bodies_for_serde_json() -> impl Iterator<Item = Vec<u8>> {
    let table = table::bodies().into_iter().map(|case| case.body);
    table.chain(Bodies::new(2).take(count(20_000)))
}

/// Which bodies are one well-formed object: here the two must agree on every
/// body there is. `RawValue` checks the grammar, computes no number, looks at
/// no surrogate and does not recurse. It wants UTF-8, which the contract asks
/// of the id alone; so it is given the body with a question mark for each byte
/// above 0x7F. Inside a string that changes nothing, and outside of one
/// neither is JSON.
#[test]
fn serde_json_agrees_on_what_is_well_formed() {
    for body in bodies_for_serde_json() {
        let ascii: Vec<u8> = body
            .iter()
            .map(|&byte| if byte.is_ascii() { byte } else { b'?' })
            .collect();
        let theirs = serde_json::from_slice::<&RawValue>(&ascii)
            .is_ok_and(|value| value.get().trim_start().starts_with('{'));
        let ours = verdict(&body) != Err(Reason::Malformed);
        assert_eq!(ours, theirs, "on the body {}", body.escape_ascii());
    }
}

/// The id and the reason: here the two must agree wherever `Value` can hold
/// the body. Where it cannot though the body is well-formed, that is for one of
/// four limits of its own: 127 levels, numbers beyond a double, unpaired
/// surrogates anywhere, and anything that is not UTF-8 anywhere.
#[test]
fn serde_json_agrees_on_the_id() {
    let mut held = 0;
    for body in bodies_for_serde_json() {
        let ours = verdict(&body);
        match serde_json::from_slice::<Value>(&body) {
            Ok(value) => {
                held += 1;
                assert_eq!(ours, read(&value), "on the body {}", body.escape_ascii());
            }
            Err(_) if ours == Err(Reason::Malformed) => {}
            Err(error) => {
                let text = error.to_string();
                let its_own_limit = [
                    "recursion limit exceeded",
                    "number out of range",
                    "lone leading surrogate in hex escape",
                    "unexpected end of hex escape",
                    "invalid unicode code point",
                ];
                assert!(
                    its_own_limit.iter().any(|limit| text.starts_with(limit)),
                    "{text}, on the body {}",
                    body.escape_ascii()
                );
            }
        }
    }
    assert!(held * 4 > count(20_000), "only {held} bodies were compared");
}

fn read(value: &Value) -> Result<String, Reason> {
    let envelope = value.as_object().ok_or(Reason::Malformed)?;
    let meta = envelope.get("meta").ok_or(Reason::Absent)?;
    let meta = meta.as_object().ok_or(Reason::Unusable)?;
    match meta.get("id").ok_or(Reason::Absent)? {
        Value::String(id) if (1..=2048).contains(&id.len()) && !id.contains('\0') => Ok(id.clone()),
        _ => Err(Reason::Unusable),
    }
}
