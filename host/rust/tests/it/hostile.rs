//! Components that somebody else has made, badly or with intent: each does
//! harm to the call that it harms, and to nothing else.

use crate::stores::{Probe, envelope};
use babelqueue_guard::component::{Component, Limits};
use babelqueue_guard::{
    Context, Delivery, Error, FailOpen, Guard, GuardError, Mark, Outcome, Processed, Store, Ticket,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const WORLDS: &str = r#"
    package test:hostile;
    interface clock { now: func() -> u64; }
    world guard {
        import babelqueue:guard/store@0.1.0;
        import babelqueue:guard/claims@0.1.0;
        export babelqueue:guard/guard@0.1.0;
    }
    world curious {
        import clock;
        export babelqueue:guard/guard@0.1.0;
    }
    world silent {
        import babelqueue:guard/store@0.1.0;
    }
"#;

/// What the store is asked through, two ids to ask about, and the place of
/// every result: all zero, it is `ok(run(open(malformed)))`.
const FRAME: &str = r#"
    (memory (export "memory") 1)
    (data (i32.const 512) "other")
    (data (i32.const 528) "another")
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
"#;
const IMPORTS: &str = r#"
    (import "babelqueue:guard/store@0.1.0" "seen" (func $seen (param i32 i32 i32)))
    (import "babelqueue:guard/store@0.1.0" "remember" (func $remember (param i32 i32 i32)))
    (import "babelqueue:guard/claims@0.1.0" "claim" (func $claim (param i32 i32 i32)))
"#;

const ASK_ABOUT_OTHER: &str = "(call $seen (i32.const 512) (i32.const 5) (i32.const 2048))";
const RUN_OPEN: &str = "(i32.store (i32.const 1040) (i32.const 0))";
const RUN_OTHER: &str = "
    (i32.store (i32.const 1040) (i32.const 1))
    (i32.store (i32.const 1048) (i32.const 512))
    (i32.store (i32.const 1052) (i32.const 5))";
const RUN_ANOTHER: &str = "
    (i32.store (i32.const 1040) (i32.const 1))
    (i32.store (i32.const 1048) (i32.const 528))
    (i32.store (i32.const 1052) (i32.const 7))";
const SKIP_OTHER: &str = "
    (i32.store8 (i32.const 1032) (i32.const 1))
    (i32.store (i32.const 1040) (i32.const 512))
    (i32.store (i32.const 1044) (i32.const 5))";
const PARK_OTHER: &str = "
    (i32.store8 (i32.const 1032) (i32.const 2))
    (i32.store (i32.const 1040) (i32.const 512))
    (i32.store (i32.const 1044) (i32.const 5))";

/// A core module whose functions do what is said here; the others trap.
fn module(imports: &str, rest: &str, functions: &[(&str, &str)]) -> String {
    let mut text = format!("(module {imports} {FRAME} {rest}\n");
    for (name, parameters) in [
        ("decide", "i32 i32"),
        ("decide-text", "i32 i32"),
        ("decide-id", "i32 i32"),
        ("settle", "i32 i32 i32 i32 i32 i64 i32"),
        ("renew", "i32 i32 i32 i32 i32 i64"),
        ("forget", "i32 i32"),
    ] {
        let named = functions.iter().find(|(function, _)| *function == name);
        let body = named.map_or("(unreachable)", |(_, body)| body);
        text += &format!(
            "(func ${name} (export \"babelqueue:guard/guard@0.1.0#{name}\")
                (param {parameters}) (result i32) {body} (i32.const 1024))\n"
        );
    }
    text + ")"
}

fn encode(world: &str, module: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/wit");
    resolve.push_dir(wit).unwrap();
    let package = resolve.push_str("hostile.wit", WORLDS).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = wat::parse_str(module).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let encoder = ComponentEncoder::default().module(&module).unwrap();
    encoder.validate(true).encode().unwrap()
}

fn component(functions: &[(&str, &str)], limits: Limits) -> Component {
    let bytes = encode("guard", &module(IMPORTS, "", functions));
    Component::from_bytes(&bytes, limits).unwrap()
}

/// Does something to a body of four bytes, and takes any other for malformed.
fn on_boom(what: &str) -> String {
    format!("(if (i32.eq (local.get 1) (i32.const 4)) (then {what}))")
}

async fn ok(_: Context) -> Result<(), &'static str> {
    Ok(())
}

async fn never(_: Context) -> Result<(), &'static str> {
    panic!("the handler must not be called")
}

fn trapped<T: std::fmt::Debug>(result: Result<T, Error>, because: &str) {
    match result {
        Err(Error::Guard(GuardError::Trap(text))) => assert!(text.contains(because), "{text}"),
        other => panic!("no trap because of {because:?} but {other:?}"),
    }
}

async fn decides_normally(guard: &Guard) {
    let ran = guard.process("another body", ok).await.unwrap();
    assert_eq!(ran.fail_open(), Some(FailOpen::Malformed));
}

#[tokio::test]
async fn a_component_that_goes_wrong_harms_no_other_delivery() {
    let recurse = "(return (call $decide (local.get 0) (local.get 1)))";
    let twice = [ASK_ABOUT_OTHER, ASK_ABOUT_OTHER].concat();
    let mixed_up = [ASK_ABOUT_OTHER, RUN_ANOTHER].concat();
    let no_case = "(i32.store8 (i32.const 1024) (i32.const 9))";
    let not_text = format!("{SKIP_OTHER} (i32.store8 (i32.const 512) (i32.const 255))");
    for (what, because) in [
        ("(unreachable)", "unreachable"),
        (recurse, "call stack exhausted"),
        ("(return (i32.const -8))", "pointer"),
        (no_case, "discriminant"),
        (&not_text, "utf-8"),
        (&twice, "two questions"),
        (&mixed_up, "decided on Some(\"another\")"),
        (SKIP_OTHER, "asked about None"),
        (RUN_OTHER, "asked about None"),
    ] {
        let what = on_boom(what);
        let functions = [("decide", what.as_str()), ("settle", "")];
        let component = component(&functions, Limits::FOREIGN);
        let store = Probe::default();
        let guard = Guard::with_component(component.clone(), store.clone());
        for _ in 0..3 {
            decides_normally(&guard).await;
            assert_eq!(component.pooled(), 1);
            trapped(guard.process("boom", never).await, because);
            assert_eq!(component.pooled(), 0);
        }
        decides_normally(&guard).await;
        assert!(store.asked().is_empty(), "{what}: {:?}", store.asked());
    }
}

#[tokio::test]
async fn a_component_that_traps_in_every_call_disables_nothing_but_itself() {
    let component = component(&[], Limits::FOREIGN);
    let store = Probe::default();
    let guard = Guard::with_component(component.clone(), store.clone());
    let ticket = Ticket::Seen("a".into());
    for _ in 0..3 {
        trapped(guard.process(&envelope("a"), never).await, "unreachable");
        let by_id = guard.process(Delivery::from_id("a"), never).await;
        trapped(by_id, "unreachable");
        let settled = guard.settle(&ticket, Outcome::Succeeded).await;
        trapped(settled, "unreachable");
        trapped(guard.renew(&ticket).await, "unreachable");
        trapped(guard.forget("a").await, "unreachable");
    }
    assert_eq!(component.pooled(), 0);
    assert!(store.asked().is_empty());
    let guard = guard.over(Component::plain().unwrap());
    let ran = guard.process(&envelope("a"), ok).await.unwrap();
    assert!(matches!(ran, Processed::Ran { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_component_that_loops_is_stopped_and_holds_nobody_up() {
    let forever = on_boom("(loop $again (br $again))");
    let component = component(&[("decide", &forever)], Limits::FOREIGN);
    let guard = Guard::with_component(component, Probe::default());
    decides_normally(&guard).await;
    let looping = guard.clone();
    let looping = tokio::spawn(async move { looping.process("boom", never).await });
    let mut meanwhile = 0;
    while !looping.is_finished() {
        let other = guard.clone();
        let other = tokio::spawn(async move { decides_normally(&other).await });
        other.await.unwrap();
        meanwhile += 1;
    }
    assert!(meanwhile > 1, "{meanwhile}");
    trapped(looping.await.unwrap(), "interrupt");
    decides_normally(&guard).await;
}

/// Nobody but the component says what a body's id is; once it has said so, or
/// has been told the id, it cannot mean another.
#[tokio::test]
async fn a_component_is_held_to_its_id() {
    let about_other = [ASK_ABOUT_OTHER, RUN_OTHER].concat();
    let mark_another = "(call $remember (i32.const 528) (i32.const 7) (i32.const 2048))
        (i32.store8 (i32.const 1028) (i32.const 1))";
    let functions = [
        ("decide", about_other.as_str()),
        ("decide-id", &about_other),
        ("settle", mark_another),
    ];
    let store = Probe::default();
    let guard = Guard::with_component(component(&functions, Limits::FOREIGN), store.clone());
    let ran = guard.process(&envelope("a"), ok).await.unwrap();
    assert_eq!(ran.id(), Some("other"));
    let Processed::Ran { mark, .. } = ran else {
        panic!("{ran:?}")
    };
    let Mark::Missing(missing) = mark else {
        panic!("{mark:?}")
    };
    trapped(Err::<(), _>(missing), "was given \"other\"");
    let by_id = guard.process(Delivery::from_id("a"), never).await;
    trapped(by_id, "was given \"a\"");
    assert_eq!(store.asked(), ["seen other"]);
}

/// Here it has been asked, and must not turn a skip into a run.
#[tokio::test]
async fn a_component_that_does_not_ask_again_decides_nothing() {
    let functions = [
        ("decide", [ASK_ABOUT_OTHER, RUN_OTHER].concat()),
        ("decide-id", RUN_OPEN.to_owned()),
    ];
    let functions = functions
        .each_ref()
        .map(|(name, body)| (*name, body.as_str()));
    let store = Probe::default();
    let guard = Guard::with_component(component(&functions, Limits::FOREIGN), store.clone());
    store.memory.remember("other").await.unwrap();
    trapped(guard.process("boom", never).await, "once only");
}

#[tokio::test]
async fn a_claim_that_the_component_cannot_take_in_is_given_back() {
    let claim = "(call $claim (i32.const 512) (i32.const 5) (i32.const 2048))";
    let park = [claim, PARK_OTHER].concat();
    let component = component(&[("decide", &park)], Limits::FOREIGN);
    let store = Probe::default();
    let guard = Guard::claiming(store.clone()).unwrap().over(component);
    trapped(guard.process("boom", never).await, "unreachable");
    assert_eq!(store.asked(), ["claim other", "release other"]);
}

#[tokio::test]
async fn a_component_that_never_gets_ready_is_an_error_in_each_call() {
    for start in ["(unreachable)", "(loop $again (br $again))"] {
        let rest = format!("(func $start {start}) (start $start)");
        let bytes = encode("guard", &module(IMPORTS, &rest, &[]));
        let component = Component::from_bytes(&bytes, Limits::FOREIGN).unwrap();
        let guard = Guard::with_component(component, Probe::default());
        let error = guard.process("boom", never).await.unwrap_err();
        assert!(
            matches!(error, Error::Guard(GuardError::Component(_))),
            "{error}"
        );
    }
}

#[test]
fn a_component_that_wants_more_or_offers_less_is_refused_and_told_why() {
    let clock = r#"(import "test:hostile/clock" "now" (func (result i64)))"#;
    let curious = encode("curious", &module(clock, "", &[]));
    let silent = encode("silent", &format!("(module {FRAME})"));
    for (bytes, because) in [
        (curious, "test:hostile/clock"),
        (silent, "babelqueue:guard/guard@0.1.0"),
    ] {
        let error = Component::from_bytes(&bytes, Limits::FOREIGN).unwrap_err();
        assert!(matches!(error, GuardError::Component(_)), "{error:?}");
        assert!(error.to_string().contains(because), "{error}");
    }
}
