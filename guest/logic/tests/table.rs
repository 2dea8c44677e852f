//! The shared table of cases: what is read from each body, and which ids may
//! be used. The slow reference has to agree with the table as well.

use babelqueue_guard_logic::types::{Decision, FailOpen, StoreError, Ticket};
use babelqueue_guard_logic::{Guard, Plain, Store, extract};
use envelope_corpus::{Reason, reference, table};

fn reason(reason: FailOpen) -> Reason {
    match reason {
        FailOpen::Malformed => Reason::Malformed,
        FailOpen::Absent => Reason::Absent,
        FailOpen::Unusable => Reason::Unusable,
    }
}

#[test]
fn every_body_of_the_table_gives_its_id_or_its_reason() {
    let cases = table::bodies();
    assert!(cases.len() > 600, "only {} cases", cases.len());
    for case in cases {
        let verdict = extract(&case.body).map_err(reason);
        assert_eq!(verdict, case.verdict, "{}: {}", case.file, case.why);
    }
}

#[test]
fn the_reference_agrees_with_the_table() {
    for case in table::bodies() {
        assert_eq!(reference(&case.body), case.verdict, "{}", case.file);
    }
}

/// Cut off anywhere, an object is no object; and what is cut off may be the
/// rest of a character, an escape, a number or a literal.
#[test]
fn every_beginning_of_a_good_body_is_malformed() {
    for case in table::bodies() {
        let body = case.body.trim_ascii_end();
        if case.verdict == Err(Reason::Malformed) || body.len() > 5_000 {
            continue;
        }
        for end in 0..body.len() {
            let verdict = extract(&body[..end]);
            assert_eq!(verdict, Err(FailOpen::Malformed), "{} {end}", case.file);
        }
    }
}

/// Answers "not seen" to the id it is meant for, and fails the test for any
/// other question.
struct Only<'a>(&'a str);

impl Store for Only<'_> {
    fn seen(&self, id: &str) -> Result<bool, StoreError> {
        assert_eq!(id, self.0);
        Ok(false)
    }

    fn remember(&self, _: &str) -> Result<(), StoreError> {
        unreachable!("a decision records nothing")
    }

    fn forget(&self, _: &str) -> Result<(), StoreError> {
        unreachable!("a decision removes nothing")
    }
}

#[test]
fn the_rules_for_an_id_hold_for_one_that_is_passed() {
    for case in table::given_ids() {
        let decision = Plain(Only(&case.id)).decide_id(case.id.clone());
        let expected = if case.usable {
            Ticket::Seen(case.id)
        } else {
            Ticket::Open(FailOpen::Unusable)
        };
        assert_eq!(decision, Ok(Decision::Run(expected)), "{}", case.why);
    }
}

/// An id that is passed and the same one read from a body are judged alike.
#[test]
fn the_rules_for_an_id_hold_for_one_that_is_read() {
    for case in table::given_ids() {
        let body = serde_json::json!({"meta": {"id": case.id}}).to_string();
        let expected = if case.usable {
            Ok(case.id)
        } else {
            Err(FailOpen::Unusable)
        };
        assert_eq!(extract(body.as_bytes()), expected, "{}", case.why);
    }
}
