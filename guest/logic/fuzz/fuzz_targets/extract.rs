//! The scanner against the slow reference, on whatever the fuzzer thinks of.
//! `scripts/fuzz` runs it.

#![no_main]

use babelqueue_guard_logic::extract;
use babelqueue_guard_logic::types::FailOpen;
use envelope_corpus::{Reason, reference};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let verdict = extract(body).map_err(|reason| match reason {
        FailOpen::Malformed => Reason::Malformed,
        FailOpen::Absent => Reason::Absent,
        FailOpen::Unusable => Reason::Unusable,
    });
    assert_eq!(verdict, reference(body));
});
