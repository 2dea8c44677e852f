//! An artifact as a component, through wasmtime's component API.

use crate::{Artifact, Call, Make, Maker, Reply, State, World, bytes};
use babelqueue_guard_logic::types::{
    ClaimOutcome, Decision, FailOpen, Hold, Lease, Leased, Outcome, Parked, Settled, StoreError,
    Ticket,
};
use envelope_corpus::recording::{Answer, Outcomes, Question, Value};
use wasmtime::component::{self, Instance, Linker, Val};
use wasmtime::{Engine, Store};

/// An instance of a component.
pub struct Component {
    store: Store<State>,
    instance: Instance,
}

pub(crate) fn maker(engine: &Engine, world: World) -> Maker {
    let file = format!("{}.component.wasm", world.name());
    let component = component::Component::new(engine, bytes(&file)).expect("a component");
    let engine = engine.clone();
    Maker {
        file,
        world,
        make: Make::Component(Box::new(move |memory| {
            let linker = linker(&engine, world);
            let mut store = Store::new(&engine, State::new(memory));
            store.limiter(|state| state);
            let instance = linker.instantiate(&mut store, &component);
            let instance = instance.expect("an instance");
            Component { store, instance }
        })),
    }
}

fn linker(engine: &Engine, world: World) -> Linker<State> {
    let mut linker: Linker<State> = Linker::new(engine);
    for (interface, functions) in world.imports() {
        let mut interface = linker.instance(interface).expect("a new interface");
        for &function in *functions {
            let import = interface.func_new(function, move |mut context, _, arguments, results| {
                let answer = context.data_mut().ask(Question {
                    function: function.to_owned(),
                    arguments: arguments.iter().map(text).collect(),
                });
                results[0] = lower_answer(&answer);
                Ok(())
            });
            import.expect("a new function");
        }
    }
    linker
}

impl Artifact for Component {
    fn call_over(&mut self, store: crate::Store, call: &Call) -> wasmtime::Result<Outcomes<Reply>> {
        self.store.data_mut().begin(store);
        let (name, arguments) = lower_call(call);
        let interface = match call {
            Call::Once(..) => "babelqueue:guard/steps@0.1.0",
            _ => "babelqueue:guard/guard@0.1.0",
        };
        let place = self
            .instance
            .get_export_index(&mut self.store, None, interface)
            .and_then(|place| {
                self.instance
                    .get_export_index(&mut self.store, Some(&place), name)
            })
            .expect("an exported function");
        let function = self.instance.get_func(&mut self.store, place);
        let mut results = [Val::Bool(false)];
        function
            .expect("a function")
            .call(&mut self.store, &arguments, &mut results)?;
        let [result] = results;
        Ok((lift_reply(call, result), self.store.data().asked.clone()))
    }

    fn memory(&self) -> usize {
        self.store.data().memory
    }
}

fn lower_call(call: &Call) -> (&'static str, Vec<Val>) {
    let text = |text: &String| Val::String(text.clone());
    match call {
        Call::Decide(body) => {
            let body = body.iter().map(|&byte| Val::U8(byte)).collect();
            ("decide", vec![Val::List(body)])
        }
        Call::DecideText(body) => ("decide-text", vec![text(body)]),
        Call::DecideId(id) => ("decide-id", vec![text(id)]),
        Call::Settle(ticket, outcome) => ("settle", vec![lower_ticket(ticket), lower(*outcome)]),
        Call::Renew(ticket) => ("renew", vec![lower_ticket(ticket)]),
        Call::Forget(id) => ("forget", vec![text(id)]),
        Call::Once(ticket, step) => ("once", vec![lower_ticket(ticket), text(step)]),
    }
}

fn lower_ticket(ticket: &Ticket) -> Val {
    match ticket {
        Ticket::Open(FailOpen::Malformed) => case("open", enumeration("malformed")),
        Ticket::Open(FailOpen::Absent) => case("open", enumeration("absent")),
        Ticket::Open(FailOpen::Unusable) => case("open", enumeration("unusable")),
        Ticket::Seen(id) => case("seen", Val::String(id.clone())),
        Ticket::Leased(Leased { id, lease }) => {
            let id = ("id".to_owned(), Val::String(id.clone()));
            let lease = ("lease".to_owned(), lower_lease(lease));
            case("leased", Val::Record(vec![id, lease]))
        }
    }
}

fn lower_lease(lease: &Lease) -> Val {
    let token = ("token".to_owned(), Val::String(lease.token.clone()));
    let length = ("length-ms".to_owned(), Val::U64(lease.length_ms));
    Val::Record(vec![token, length])
}

fn lower(outcome: Outcome) -> Val {
    enumeration(match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
    })
}

fn case(name: &str, payload: Val) -> Val {
    Val::Variant(name.to_owned(), Some(Box::new(payload)))
}

fn enumeration(name: &str) -> Val {
    Val::Enum(name.to_owned())
}

fn lower_answer(answer: &Answer) -> Val {
    Val::Result(match answer {
        Ok(Value::Nothing) => Ok(None),
        Ok(value) => Ok(Some(Box::new(match value {
            Value::Bool(yes) => Val::Bool(*yes),
            Value::Hold(Hold::Held) => enumeration("held"),
            Value::Hold(Hold::Lost) => enumeration("lost"),
            Value::Claim(ClaimOutcome::Won(lease)) => case("won", lower_lease(lease)),
            Value::Claim(ClaimOutcome::Busy(left_ms)) => case("busy", Val::U64(*left_ms)),
            Value::Claim(ClaimOutcome::Done) => Val::Variant("done".to_owned(), None),
            Value::Nothing => unreachable!("above"),
        }))),
        Err(StoreError::Unavailable(text)) => Err(Some(Box::new(case(
            "unavailable",
            Val::String(text.clone()),
        )))),
        Err(StoreError::Rejected(text)) => {
            Err(Some(Box::new(case("rejected", Val::String(text.clone())))))
        }
    })
}

fn lift_reply(call: &Call, result: Val) -> Result<Reply, StoreError> {
    match (result, call) {
        (Val::Result(Ok(None)), Call::Forget(_)) => Ok(Reply::Nothing),
        (Val::Result(Ok(Some(value))), _) => Ok(match (*value, call) {
            (Val::Bool(yes), Call::Once(..)) => Reply::Bool(yes),
            (Val::Enum(name), Call::Renew(_)) => Reply::Hold(match name.as_str() {
                "held" => Hold::Held,
                "lost" => Hold::Lost,
                other => panic!("no case of hold: {other}"),
            }),
            (Val::Enum(name), Call::Settle(..)) => Reply::Settled(match name.as_str() {
                "nothing" => Settled::Nothing,
                "marked" => Settled::Marked,
                "marked-late" => Settled::MarkedLate,
                "released" => Settled::Released,
                "lease-lost" => Settled::LeaseLost,
                other => panic!("no case of settled: {other}"),
            }),
            (decision, _) => Reply::Decision(lift_decision(&decision)),
        }),
        (Val::Result(Err(Some(error))), _) => {
            let (name, payload) = variant(&error);
            Err(match name {
                "unavailable" => StoreError::Unavailable(text(payload)),
                "rejected" => StoreError::Rejected(text(payload)),
                other => panic!("no case of store-error: {other}"),
            })
        }
        (other, _) => panic!("no result: {other:?}"),
    }
}

fn lift_decision(decision: &Val) -> Decision {
    match variant(decision) {
        ("run", ticket) => Decision::Run(lift_ticket(ticket)),
        ("skip", id) => Decision::Skip(text(id)),
        ("park", parked) => Decision::Park(Parked {
            id: text(field(parked, 0, "id")),
            left_ms: number(field(parked, 1, "left-ms")),
        }),
        other => panic!("no decision: {other:?}"),
    }
}

fn lift_ticket(ticket: &Val) -> Ticket {
    match variant(ticket) {
        ("open", Val::Enum(reason)) => Ticket::Open(match reason.as_str() {
            "malformed" => FailOpen::Malformed,
            "absent" => FailOpen::Absent,
            "unusable" => FailOpen::Unusable,
            other => panic!("no case of fail-open: {other}"),
        }),
        ("seen", id) => Ticket::Seen(text(id)),
        ("leased", leased) => {
            let lease = field(leased, 1, "lease");
            Ticket::Leased(Leased {
                id: text(field(leased, 0, "id")),
                lease: Lease {
                    token: text(field(lease, 0, "token")),
                    length_ms: number(field(lease, 1, "length-ms")),
                },
            })
        }
        other => panic!("no ticket: {other:?}"),
    }
}

fn variant(value: &Val) -> (&str, &Val) {
    match value {
        Val::Variant(name, Some(payload)) => (name, payload),
        other => panic!("no variant with a payload: {other:?}"),
    }
}

fn field<'a>(value: &'a Val, place: usize, name: &str) -> &'a Val {
    match value {
        Val::Record(fields) if fields[place].0 == name => &fields[place].1,
        other => panic!("no record with {name}: {other:?}"),
    }
}

fn text(value: &Val) -> String {
    match value {
        Val::String(text) => text.clone(),
        other => panic!("no string: {other:?}"),
    }
}

fn number(value: &Val) -> u64 {
    match value {
        Val::U64(number) => *number,
        other => panic!("no number: {other:?}"),
    }
}
