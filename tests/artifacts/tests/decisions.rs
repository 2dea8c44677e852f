//! Every function with every kind of argument, under every answer of the
//! store: each artifact replies, and asks, what the native logic does.

use artifact_tests::{Call, CoreModule, Maker, Reply, World, makers, native};
use babelqueue_guard_logic::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, StoreError, Ticket,
};
use envelope_corpus::recording::{Answer, Value};

fn texts() -> [String; 7] {
    [
        String::new(),
        String::from("parcel-1"),
        String::from("a\0b"),
        String::from("caf\u{e9} \u{1f4e6}"),
        "y".repeat(2048),
        "y".repeat(2049),
        String::from("{\"meta\":{\"id\":\"parcel-2\"}}"),
    ]
}

fn tickets() -> Vec<Ticket> {
    let reasons = [FailOpen::Malformed, FailOpen::Absent, FailOpen::Unusable];
    let open = reasons.map(Ticket::Open);
    let seen = texts().map(Ticket::Seen);
    let lengths = [0, 1, 60_000, u64::MAX];
    let leased = lengths.into_iter().flat_map(|length_ms| {
        texts().map(|id| {
            let token = format!("token of {length_ms}");
            let lease = Lease { token, length_ms };
            Ticket::Leased(Leased { id, lease })
        })
    });
    open.into_iter().chain(seen).chain(leased).collect()
}

fn errors<T>() -> [Result<T, StoreError>; 3] {
    [
        Err(StoreError::Unavailable(String::from(
            "no route to the store",
        ))),
        Err(StoreError::Rejected("long ".repeat(5_000))),
        Err(StoreError::Rejected(String::new())),
    ]
}

/// Every answer that the WIT allows to what a call may ask.
fn answers(world: World, call: &Call) -> Vec<Answer> {
    let bools = [true, false].map(Value::Bool).to_vec();
    let holds = [Hold::Held, Hold::Lost].map(Value::Hold).to_vec();
    let lease = |length_ms| Lease {
        token: "t".repeat(40),
        length_ms,
    };
    let claims = [
        ClaimOutcome::Won(lease(60_000)),
        ClaimOutcome::Won(lease(u64::MAX)),
        ClaimOutcome::Busy(0),
        ClaimOutcome::Busy(u64::MAX),
        ClaimOutcome::Done,
    ];
    let values = match call {
        Call::Decide(_) | Call::DecideText(_) | Call::DecideId(_) => match world {
            World::Plain => bools,
            World::Claiming => claims.map(Value::Claim).to_vec(),
        },
        Call::Settle(Ticket::Leased(_), _) if world == World::Claiming => holds,
        Call::Settle(..) | Call::Forget(_) => vec![Value::Nothing],
        Call::Renew(_) => holds,
        Call::Once(..) => bools,
    };
    values.into_iter().map(Ok).chain(errors()).collect()
}

fn calls(world: World) -> Vec<Call> {
    let mut calls = Vec::new();
    for text in texts() {
        calls.push(Call::Decide(text.clone().into_bytes()));
        calls.push(Call::DecideText(text.clone()));
        calls.push(Call::DecideId(text.clone()));
        calls.push(Call::Forget(text));
    }
    for ticket in tickets() {
        for outcome in [Outcome::Succeeded, Outcome::Failed] {
            calls.push(Call::Settle(ticket.clone(), outcome));
        }
        calls.push(Call::Renew(ticket.clone()));
        if world == World::Claiming {
            for step in [
                "",
                "add_points",
                "Add points",
                &"s".repeat(40),
                &"s".repeat(41),
            ] {
                calls.push(Call::Once(ticket.clone(), step.to_owned()));
            }
        }
    }
    calls
}

/// Goes over every call and answer, twice: with one instance for all, and
/// with a fresh one, which knows nothing of the calls before.
#[test]
fn every_call_replies_and_asks_what_the_native_logic_does() {
    for maker in makers() {
        let mut used = maker.instance();
        let mut compared = 0;
        for call in calls(maker.world) {
            for answer in answers(maker.world, &call) {
                let expected = native(maker.world, &call, &answer);
                assert!(expected.1.len() <= 1, "asked twice: {expected:?}");
                let context = format!("{}: {call:?} under {answer:?}", maker.file);
                assert_eq!(used.call(&call, &answer).unwrap(), expected, "{context}");
                if compared % 20 == 0 {
                    let mut fresh = maker.instance();
                    assert_eq!(fresh.call(&call, &answer).unwrap(), expected, "{context}");
                }
                compared += 1;
            }
        }
        assert!(compared > 500, "{compared}");
    }
}

fn core_modules() -> impl Iterator<Item = (Maker, CoreModule)> {
    makers().into_iter().filter_map(|maker| {
        let instance = maker.core_module()?;
        Some((maker, instance))
    })
}

/// The component model refuses such strings at the boundary. Who calls the
/// core module has nobody to do that for him.
#[test]
fn bytes_that_are_not_utf_8_are_no_id_to_the_core_module() {
    let bad: [&[u8]; 6] = [
        b"\xff",
        b"a\xc3",
        b"\xed\xa0\xbd\xed\xb3\xa6",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"parcel-1\x80",
    ];
    for (maker, mut instance) in core_modules() {
        for id in bad {
            let answer = maker.world.not_seen();
            let call = Call::DecideId(String::new());
            let decided = instance.call_with_bytes(&call, id, &answer).unwrap();
            let open = Ticket::Open(FailOpen::Unusable);
            assert_eq!(decided, (Ok(Reply::Decision(Decision::Run(open))), vec![]));

            let settle = Call::Settle(Ticket::Seen(String::new()), Outcome::Succeeded);
            for call in [Call::Forget(String::new()), settle] {
                let answer = Ok(Value::Nothing);
                let (reply, asked) = instance.call_with_bytes(&call, id, &answer).unwrap();
                let rejected = matches!(reply, Err(StoreError::Rejected(_)));
                assert!(rejected, "{}: {call:?}: {reply:?}", maker.file);
                assert_eq!(asked, vec![]);
            }
        }
    }
}

/// Text that such a caller passes is judged as the same bytes are.
#[test]
fn text_that_is_not_utf_8_is_judged_by_the_core_module_as_bytes() {
    let bodies: [&[u8]; 3] = [
        b"{\"meta\":{\"id\":\"\xed\xa0\xbd\"}}",
        b"{\"data\":\"\xed\xa0\xbd\",\"meta\":{\"id\":\"x\"}}",
        b"\xff",
    ];
    for (maker, mut instance) in core_modules() {
        for body in bodies {
            let answer = maker.world.not_seen();
            let call = Call::DecideText(String::new());
            let by_text = instance.call_with_bytes(&call, body, &answer).unwrap();
            let expected = native(maker.world, &Call::Decide(body.to_vec()), &answer);
            assert_eq!(by_text, expected);
        }
    }
}
