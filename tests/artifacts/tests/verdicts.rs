//! Every body through every artifact: the same ids and reasons as the table
//! and the slow reference have.

#![expect(
    clippy::unwrap_used,
    reason = "also outside of test functions, a trap fails the test"
)]

use artifact_tests::{Artifact, Call, Reply, World, makers};
use babelqueue_guard_logic::types::{Decision, FailOpen, Ticket};
use envelope_corpus::{Bodies, Reason, count, reference, table};

type Verdict = Result<String, Reason>;

/// The verdict of a decision under an answer that lets the id be told.
fn verdict(instance: &mut dyn Artifact, world: World, call: &Call) -> Verdict {
    let (reply, asked) = instance.call(call, &world.not_seen()).unwrap();
    let (verdict, questions) = match reply {
        Ok(Reply::Decision(Decision::Run(Ticket::Open(reason)))) => (Err(reason), 0),
        Ok(Reply::Decision(Decision::Run(Ticket::Seen(id)))) if world == World::Plain => {
            (Ok(id), 1)
        }
        Ok(Reply::Decision(Decision::Park(parked))) if world == World::Claiming => {
            (Ok(parked.id), 1)
        }
        other => unreachable!("decided {other:?}"),
    };
    assert_eq!(asked.len(), questions, "{asked:?}");
    if let Ok(id) = &verdict {
        assert_eq!(asked[0].arguments, [id.as_str()]);
    }
    verdict.map_err(|reason| match reason {
        FailOpen::Malformed => Reason::Malformed,
        FailOpen::Absent => Reason::Absent,
        FailOpen::Unusable => Reason::Unusable,
    })
}

/// The verdict by bytes, and by text where the body is text.
fn both_ways(instance: &mut dyn Artifact, world: World, body: &[u8], expected: &Verdict) {
    let by_bytes = verdict(instance, world, &Call::Decide(body.to_vec()));
    assert_eq!(&by_bytes, expected, "{}", body.escape_ascii());
    if let Ok(text) = String::from_utf8(body.to_vec()) {
        let by_text = verdict(instance, world, &Call::DecideText(text));
        assert_eq!(&by_text, expected, "{}", body.escape_ascii());
    }
}

#[test]
fn every_body_of_the_table_gives_its_id_or_its_reason() {
    for maker in makers() {
        let mut instance = maker.instance();
        for case in table::bodies() {
            both_ways(&mut *instance, maker.world, &case.body, &case.verdict);
        }
    }
}

#[test]
fn generated_bodies_agree_with_the_reference() {
    // Another seed than the native test's: together they see more.
    for maker in makers() {
        let mut instance = maker.instance();
        for body in Bodies::new(3).take(count(20_000)) {
            both_ways(&mut *instance, maker.world, &body, &reference(&body));
        }
    }
}

#[test]
fn the_rules_for_an_id_hold_for_one_that_is_passed() {
    for maker in makers() {
        let mut instance = maker.instance();
        for case in table::given_ids() {
            let call = Call::DecideId(case.id.clone());
            let verdict = verdict(&mut *instance, maker.world, &call);
            let expected = if case.usable {
                Ok(case.id)
            } else {
                Err(Reason::Unusable)
            };
            assert_eq!(verdict, expected, "{}", case.why);
        }
    }
}
