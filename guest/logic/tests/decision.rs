//! What is decided, asked and recorded: the tables of the contract's sections
//! 2 to 4, a row a test, over a store that writes down every question.

use babelqueue_guard_logic::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, Parked, Settled, StoreError,
    Ticket,
};
use babelqueue_guard_logic::{Claiming, Guard, Plain, once};
use envelope_corpus::recording::{Outcomes, Question, Recorder, Value, record};

const ID: &str = "parcel-1";
const BODY: &[u8] = br#"{"meta":{"id":"parcel-1"}}"#;

fn lease() -> Lease {
    Lease {
        token: String::from("t-9"),
        length_ms: 60_000,
    }
}

fn leased(id: &str) -> Ticket {
    Ticket::Leased(Leased {
        id: id.to_owned(),
        lease: lease(),
    })
}

fn seen(id: &str) -> Ticket {
    Ticket::Seen(id.to_owned())
}

fn both_errors() -> [StoreError; 2] {
    [
        StoreError::Unavailable(String::from("no route to 10.0.0.7:6379")),
        StoreError::Rejected(String::from("WRONGTYPE under bq:idemp:parcel-1")),
    ]
}

const REASONS: [FailOpen; 3] = [FailOpen::Malformed, FailOpen::Absent, FailOpen::Unusable];
const OUTCOMES: [Outcome; 2] = [Outcome::Succeeded, Outcome::Failed];

fn asked(function: &str) -> Vec<Question> {
    vec![Question::new(function, &[ID])]
}

fn asked_with_token(function: &str) -> Vec<Question> {
    vec![Question::new(function, &[ID, &lease().token])]
}

// ---- deciding: sections 2 and 3 ------------------------------------------------

/// The same decision, and the same question, by body and by id.
fn decided(answer: Value, plain: bool, decision: &Decision, function: &str) {
    let answer = Ok(answer);
    for by_body in [true, false] {
        let result = record(&answer, |store| match (plain, by_body) {
            (true, true) => Plain(store).decide(BODY),
            (true, false) => Plain(store).decide_id(ID.to_owned()),
            (false, true) => Claiming(store).decide(BODY),
            (false, false) => Claiming(store).decide_id(ID.to_owned()),
        });
        assert_eq!(result, (Ok(decision.clone()), asked(function)));
    }
}

#[test]
fn plain_skips_what_was_seen() {
    let skip = Decision::Skip(ID.to_owned());
    decided(Value::Bool(true), true, &skip, "seen");
}

#[test]
fn plain_runs_what_was_not_seen() {
    let run = Decision::Run(seen(ID));
    decided(Value::Bool(false), true, &run, "seen");
}

#[test]
fn claiming_runs_what_it_won() {
    let won = Value::Claim(ClaimOutcome::Won(lease()));
    decided(won, false, &Decision::Run(leased(ID)), "claim");
}

#[test]
fn claiming_parks_what_another_holds() {
    for left_ms in [0, 1, 41_999, u64::MAX] {
        let busy = Value::Claim(ClaimOutcome::Busy(left_ms));
        let park = Decision::Park(Parked {
            id: ID.to_owned(),
            left_ms,
        });
        decided(busy, false, &park, "claim");
    }
}

#[test]
fn claiming_skips_what_is_marked() {
    let skip = Decision::Skip(ID.to_owned());
    decided(Value::Claim(ClaimOutcome::Done), false, &skip, "claim");
}

#[test]
fn without_an_id_it_runs_and_asks_nothing() {
    let bodies: [(&[u8], FailOpen); 3] = [
        (b"{\"meta\":", FailOpen::Malformed),
        (b"{\"meta\":{}}", FailOpen::Absent),
        (b"{\"meta\":{\"id\":7}}", FailOpen::Unusable),
    ];
    for (body, reason) in bodies {
        let run = Ok(Decision::Run(Ticket::Open(reason)));
        let plain = record(&Ok(Value::Nothing), |store| Plain(store).decide(body));
        assert_eq!(plain, (run.clone(), vec![]));
        let claiming = record(&Ok(Value::Nothing), |store| Claiming(store).decide(body));
        assert_eq!(claiming, (run, vec![]));
    }
}

#[test]
fn an_unusable_id_that_is_passed_runs_and_asks_nothing() {
    for id in unusable_ids() {
        let run = Ok(Decision::Run(Ticket::Open(FailOpen::Unusable)));
        let plain = record(&Ok(Value::Nothing), |store| {
            Plain(store).decide_id(id.clone())
        });
        assert_eq!(plain, (run.clone(), vec![]));
        let claiming = record(&Ok(Value::Nothing), |store| Claiming(store).decide_id(id));
        assert_eq!(claiming, (run, vec![]));
    }
}

fn unusable_ids() -> [String; 3] {
    [String::new(), String::from("a\0b"), "y".repeat(2049)]
}

// ---- settling ------------------------------------------------------------------

#[test]
fn without_an_id_nothing_is_recorded() {
    for reason in REASONS {
        for outcome in OUTCOMES {
            let ticket = Ticket::Open(reason);
            let plain = record(&Ok(Value::Nothing), |store| {
                Plain(store).settle(ticket.clone(), outcome)
            });
            assert_eq!(plain, (Ok(Settled::Nothing), vec![]));
            let claiming = record(&Ok(Value::Nothing), |store| {
                Claiming(store).settle(ticket, outcome)
            });
            assert_eq!(claiming, (Ok(Settled::Nothing), vec![]));
        }
    }
}

#[test]
fn plain_remembers_a_success() {
    // Also one that a claiming guard decided on: there is no lease to drop.
    for ticket in [seen(ID), leased(ID)] {
        let settled = record(&Ok(Value::Nothing), |store| {
            Plain(store).settle(ticket, Outcome::Succeeded)
        });
        assert_eq!(settled, (Ok(Settled::Marked), asked("remember")));
    }
}

#[test]
fn plain_records_nothing_of_a_failure() {
    for ticket in [seen(ID), leased(ID)] {
        let settled = record(&Ok(Value::Nothing), |store| {
            Plain(store).settle(ticket, Outcome::Failed)
        });
        assert_eq!(settled, (Ok(Settled::Nothing), vec![]));
    }
}

#[test]
fn claiming_completes_a_success_and_says_when_it_was_late() {
    for (hold, settled) in [
        (Hold::Held, Settled::Marked),
        (Hold::Lost, Settled::MarkedLate),
    ] {
        let result = record(&Ok(Value::Hold(hold)), |store| {
            Claiming(store).settle(leased(ID), Outcome::Succeeded)
        });
        assert_eq!(result, (Ok(settled), asked_with_token("complete")));
    }
}

#[test]
fn claiming_releases_after_a_failure_and_says_when_nothing_was_left() {
    for (hold, settled) in [
        (Hold::Held, Settled::Released),
        (Hold::Lost, Settled::LeaseLost),
    ] {
        let result = record(&Ok(Value::Hold(hold)), |store| {
            Claiming(store).settle(leased(ID), Outcome::Failed)
        });
        assert_eq!(result, (Ok(settled), asked_with_token("release")));
    }
}

/// In flight while its guard was exchanged for a claiming one.
#[test]
fn claiming_settles_what_a_plain_guard_decided() {
    let success = record(&Ok(Value::Nothing), |store| {
        Claiming(store).settle(seen(ID), Outcome::Succeeded)
    });
    assert_eq!(success, (Ok(Settled::Marked), asked("remember")));
    let failure = record(&Ok(Value::Nothing), |store| {
        Claiming(store).settle(seen(ID), Outcome::Failed)
    });
    assert_eq!(failure, (Ok(Settled::Nothing), vec![]));
}

// ---- renewing, forgetting ------------------------------------------------------

#[test]
fn claiming_renews_a_lease_and_nothing_else() {
    for hold in [Hold::Held, Hold::Lost] {
        let renewed = record(&Ok(Value::Hold(hold)), |store| {
            Claiming(store).renew(leased(ID))
        });
        assert_eq!(renewed, (Ok(hold), asked_with_token("renew")));
    }
    for ticket in [seen(ID), Ticket::Open(FailOpen::Absent)] {
        let renewed = record(&Ok(Value::Nothing), |store| Claiming(store).renew(ticket));
        assert_eq!(renewed, (Ok(Hold::Held), vec![]));
    }
}

/// A plain guard has nothing to renew, and a lease that nobody renews is lost.
#[test]
fn plain_renews_nothing() {
    for (ticket, hold) in [
        (seen(ID), Hold::Held),
        (Ticket::Open(FailOpen::Absent), Hold::Held),
        (leased(ID), Hold::Lost),
    ] {
        let renewed = record(&Ok(Value::Nothing), |store| Plain(store).renew(ticket));
        assert_eq!(renewed, (Ok(hold), vec![]));
    }
}

#[test]
fn forget_asks_for_that_id_alone() {
    let plain = record(&Ok(Value::Nothing), |store| Plain(store).forget(ID));
    assert_eq!(plain, (Ok(()), asked("forget")));
    let claiming = record(&Ok(Value::Nothing), |store| Claiming(store).forget(ID));
    assert_eq!(claiming, (Ok(()), asked("forget")));
}

// ---- steps: section 4 ----------------------------------------------------------

#[test]
fn a_step_runs_where_this_call_set_its_mark() {
    for first in [true, false] {
        for ticket in [seen(ID), leased(ID)] {
            let ran = record(&Ok(Value::Bool(first)), |store| {
                once(&store, ticket, "add_points")
            });
            let asked = Question::new("set-once", &[ID, "add_points"]);
            assert_eq!(ran, (Ok(first), vec![asked]));
        }
    }
}

#[test]
fn a_step_without_an_id_runs_and_asks_nothing() {
    for reason in REASONS {
        let ran = record(&Ok(Value::Nothing), |store| {
            once(&store, Ticket::Open(reason), "add_points")
        });
        assert_eq!(ran, (Ok(true), vec![]));
    }
}

#[test]
fn a_step_is_named_by_1_to_40_of_the_allowed_characters() {
    for name in ["a", "0", "_", "step_2", &"z".repeat(40)] {
        let ran = record(&Ok(Value::Bool(true)), |store| once(&store, seen(ID), name));
        assert_eq!(ran.0, Ok(true), "{name}");
    }
    for name in [
        "",
        "A",
        "Step",
        "step-2",
        "a b",
        "a:b",
        "a\0",
        "é",
        "ａ",
        "a\n",
        &"z".repeat(41),
    ] {
        // A wrong name is wrong without an id as well: it is the program's fault.
        for ticket in [seen(ID), leased(ID), Ticket::Open(FailOpen::Absent)] {
            let (result, asked) =
                record(&Ok(Value::Bool(true)), |store| once(&store, ticket, name));
            assert!(matches!(result, Err(StoreError::Rejected(_))), "{name}");
            assert_eq!(asked, vec![]);
        }
    }
}

// ---- errors: section 7 ---------------------------------------------------------

#[test]
fn an_error_comes_back_unchanged_after_one_question() {
    for error in both_errors() {
        type Call<R> = fn(&Recorder) -> Result<R, StoreError>;
        let decisions: [(Call<Decision>, Vec<Question>); 4] = [
            (|store| Plain(store).decide(BODY), asked("seen")),
            (|store| Plain(store).decide_id(ID.to_owned()), asked("seen")),
            (|store| Claiming(store).decide(BODY), asked("claim")),
            (
                |store| Claiming(store).decide_id(ID.to_owned()),
                asked("claim"),
            ),
        ];
        for (function, asked) in decisions {
            assert_eq!(
                record(&Err(error.clone()), function),
                (Err(error.clone()), asked)
            );
        }
        let settlings: [(Call<Settled>, Vec<Question>); 4] = [
            (
                |store| Plain(store).settle(seen(ID), Outcome::Succeeded),
                asked("remember"),
            ),
            (
                |store| Claiming(store).settle(seen(ID), Outcome::Succeeded),
                asked("remember"),
            ),
            (
                |store| Claiming(store).settle(leased(ID), Outcome::Succeeded),
                asked_with_token("complete"),
            ),
            (
                |store| Claiming(store).settle(leased(ID), Outcome::Failed),
                asked_with_token("release"),
            ),
        ];
        for (function, asked) in settlings {
            assert_eq!(
                record(&Err(error.clone()), function),
                (Err(error.clone()), asked)
            );
        }
        let renewed = record(&Err(error.clone()), |store| {
            Claiming(store).renew(leased(ID))
        });
        assert_eq!(renewed, (Err(error.clone()), asked_with_token("renew")));
        let forgotten = record(&Err(error.clone()), |store| Claiming(store).forget(ID));
        assert_eq!(forgotten, (Err(error.clone()), asked("forget")));
        let step = record(&Err(error.clone()), |store| once(&store, seen(ID), "s"));
        let asked = vec![Question::new("set-once", &[ID, "s"])];
        assert_eq!(step, (Err(error), asked));
    }
}

/// A ticket is a plain value that anybody can make. One that no decision could
/// have given writes nothing.
#[test]
fn a_ticket_made_by_hand_with_an_unusable_id_is_rejected() {
    fn rejected<R: std::fmt::Debug>(call: &Outcomes<R>) {
        assert!(matches!(call.0, Err(StoreError::Rejected(_))), "{call:?}");
        assert_eq!(call.1, vec![]);
    }
    for id in unusable_ids() {
        let unit = || Ok(Value::Nothing);
        for ticket in [seen(&id), leased(&id)] {
            for success in [
                record(&unit(), |store| {
                    Plain(store).settle(ticket.clone(), Outcome::Succeeded)
                }),
                record(&unit(), |store| {
                    Claiming(store).settle(ticket.clone(), Outcome::Succeeded)
                }),
            ] {
                rejected(&success);
            }
            rejected(&record(&unit(), |store| once(&store, ticket, "s")));
        }
        rejected(&record(&unit(), |store| {
            Claiming(store).settle(leased(&id), Outcome::Failed)
        }));
        rejected(&record(&unit(), |store| Claiming(store).renew(leased(&id))));
        rejected(&record(&unit(), |store| Plain(store).forget(&id)));
        rejected(&record(&unit(), |store| Claiming(store).forget(&id)));
    }
}
