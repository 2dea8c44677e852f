//! Memory and depth: what one call takes, and that nothing of it stays.

use artifact_tests::{Call, Reply, makers};
use babelqueue_guard_logic::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, StoreError, Ticket,
};
use envelope_corpus::recording::{Answer, Value};
use envelope_corpus::table;

const MIB: usize = 1 << 20;

/// The largest body that a host lets through unless it is told otherwise, and
/// nothing in it but open brackets: one bit of memory for each.
#[test]
fn sixteen_mebibytes_of_brackets_fit_into_64_of_memory() {
    let brackets = "[".repeat(16 * MIB);
    let objects = "{\"\":".repeat(4 * MIB);
    for maker in makers() {
        let mut instance = maker.instance_within(64 * MIB);
        for body in [&brackets, &objects] {
            let call = Call::DecideText(body.clone());
            let (reply, asked) = instance.call(&call, &maker.world.not_seen()).unwrap();
            let open = Decision::Run(Ticket::Open(FailOpen::Malformed));
            assert_eq!(reply, Ok(Reply::Decision(open)), "{}", maker.file);
            assert_eq!(asked, vec![]);
        }
    }
}

#[test]
fn sixteen_mebibytes_of_envelope_are_read_to_their_end() {
    let frame = r#"{"data":"","meta":{"id":"parcel-1"}}"#;
    let (head, tail) = frame.split_at(9);
    let text = [head, &"t".repeat(16 * MIB - frame.len()), tail].concat();
    let levels = 8 * MIB - frame.len();
    let deep = ["[".repeat(levels), "]".repeat(levels)].concat();
    let deep = frame.replace("\"\"", &deep);
    for maker in makers() {
        let mut instance = maker.instance_within(64 * MIB);
        for body in [&text, &deep] {
            let call = Call::DecideText(body.clone());
            let (reply, asked) = instance.call(&call, &maker.world.not_seen()).unwrap();
            assert!(reply.is_ok(), "{}: {reply:?}", maker.file);
            assert_eq!(asked[0].arguments, ["parcel-1"]);
        }
    }
}

/// Not enough memory is a trap, never a wrong verdict.
#[test]
fn a_body_that_does_not_fit_traps() {
    let body = format!(r#"{{"data":"{}"}}"#, "t".repeat(8 * MIB));
    for maker in makers() {
        let mut instance = maker.instance_within(4 * MIB);
        let call = Call::DecideText(body.clone());
        let result = instance.call(&call, &maker.world.not_seen());
        assert!(result.is_err(), "{}: {result:?}", maker.file);
    }
}

/// Calls of every kind, with errors of the store among them, a hundred
/// thousand in all: the memory is what it was after the first few.
#[test]
fn a_hundred_thousand_calls_leave_no_memory_behind() {
    let lease = Lease {
        token: "t".repeat(32),
        length_ms: 60_000,
    };
    let leased = Ticket::Leased(Leased {
        id: "y".repeat(2048),
        lease: lease.clone(),
    });
    let error: Answer = Err(StoreError::Unavailable("long ".repeat(400)));
    let bodies: Vec<Vec<u8>> = table::bodies()
        .into_iter()
        .map(|case| case.body)
        .filter(|body| body.len() < 300)
        .collect();
    for maker in makers() {
        let plain = maker.file.starts_with("plain");
        let (decided, settled) = if plain {
            (Ok(Value::Bool(false)), Ok(Value::Nothing))
        } else {
            (
                Ok(Value::Claim(ClaimOutcome::Won(lease.clone()))),
                Ok(Value::Hold(Hold::Held)),
            )
        };
        let mut instance = maker.instance();
        let mut after_warming_up = 0;
        for round in 0..20_000 {
            let body = bodies[round % bodies.len()].clone();
            let settle = Call::Settle(leased.clone(), Outcome::Succeeded);
            for (call, answer) in [
                (Call::Decide(body), &decided),
                (Call::DecideId("y".repeat(round % 2_100)), &decided),
                (settle.clone(), &settled),
                (settle, &error),
                (Call::Forget("y".repeat(round % 2_100)), &error),
            ] {
                let _ = instance.call(&call, answer).unwrap();
            }
            if round == 2_100 {
                after_warming_up = instance.memory();
            }
        }
        assert_eq!(instance.memory(), after_warming_up, "{}", maker.file);
        assert!(after_warming_up <= 3 * 65_536, "{after_warming_up}");
    }
}
