//! Drives the four artifacts of `guest/artifacts` with wasmtime, one like the
//! other and each like the native logic: a call and the store's one answer go
//! in, the reply and what the store was asked come out.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "in tests, what is missing or of the wrong form fails the test"
)]

mod component;
mod core_imports;
mod core_module;
mod native;

use babelqueue_guard_logic::types::{ClaimOutcome, Decision, Hold, Outcome, Settled, Ticket};
use envelope_corpus::recording::{Answer, Outcomes, Question, Value};
use std::fs;
use std::path::PathBuf;
use wasmtime::{Engine, ResourceLimiter};

pub use component::Component;
pub use core_module::CoreModule;
pub use native::native;

/// A WIT world of `wit/worlds.wit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// A seen-set.
    Plain,
    /// Atomic claims and single steps.
    Claiming,
}

/// Both of them.
pub const WORLDS: [World; 2] = [World::Plain, World::Claiming];

impl World {
    /// As the artifacts' names begin.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Claiming => "claiming",
        }
    }

    /// The interfaces that the world imports, each with its functions.
    #[must_use]
    pub fn imports(self) -> &'static [(&'static str, &'static [&'static str])] {
        const ALL: [(&str, &[&str]); 3] = [
            (
                "babelqueue:guard/store@0.1.0",
                &["seen", "remember", "forget"],
            ),
            (
                "babelqueue:guard/claims@0.1.0",
                &["claim", "renew", "complete", "release"],
            ),
            ("babelqueue:guard/marker@0.1.0", &["set-once"]),
        ];
        match self {
            Self::Plain => &ALL[..1],
            Self::Claiming => &ALL,
        }
    }

    /// The answer under which every usable id is told by a decision, however
    /// often it is asked for.
    pub fn not_seen(self) -> Answer {
        match self {
            Self::Plain => Ok(Value::Bool(false)),
            Self::Claiming => Ok(Value::Claim(ClaimOutcome::Busy(1))),
        }
    }
}

/// A call of an exported function.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "named and documented in wit/")]
pub enum Call {
    Decide(Vec<u8>),
    DecideText(String),
    DecideId(String),
    Settle(Ticket, Outcome),
    Renew(Ticket),
    Forget(String),
    Once(Ticket, String),
}

/// What a function returns when the store gave no error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named and documented in wit/")]
pub enum Reply {
    Decision(Decision),
    Settled(Settled),
    Hold(Hold),
    Nothing,
    Bool(bool),
}

/// A store, as an artifact's imports are linked to it.
pub type Store = Box<dyn FnMut(&Question) -> Answer + Send>;

/// An instance of an artifact.
pub trait Artifact {
    /// Calls a function; what it asks, the store answers in the middle of it.
    ///
    /// # Errors
    ///
    /// A trap.
    fn call_over(&mut self, store: Store, call: &Call) -> wasmtime::Result<Outcomes<Reply>>;

    /// Calls a function; whatever it asks gets this answer.
    ///
    /// # Errors
    ///
    /// A trap.
    fn call(&mut self, call: &Call, answer: &Answer) -> wasmtime::Result<Outcomes<Reply>> {
        self.call_over(always(answer), call)
    }

    /// The size that the instance's memory has grown to, in bytes.
    fn memory(&self) -> usize;
}

/// Makes instances of one artifact.
pub struct Maker {
    /// The file's name.
    pub file: String,
    /// Its world.
    pub world: World,
    make: Make,
}

/// Makes an instance whose memory may grow to this many bytes.
enum Make {
    Component(Box<dyn Fn(usize) -> Component>),
    CoreModule(Box<dyn Fn(usize) -> CoreModule>),
}

impl Maker {
    /// A fresh instance whose memory may grow to 64 MiB.
    #[must_use]
    pub fn instance(&self) -> Box<dyn Artifact> {
        self.instance_within(64 << 20)
    }

    /// A fresh instance whose memory may grow to this many bytes.
    #[must_use]
    pub fn instance_within(&self, memory: usize) -> Box<dyn Artifact> {
        match &self.make {
            Make::Component(make) => Box::new(make(memory)),
            Make::CoreModule(make) => Box::new(make(memory)),
        }
    }

    /// A fresh instance, if this is a core module.
    #[must_use]
    pub fn core_module(&self) -> Option<CoreModule> {
        match &self.make {
            Make::Component(_) => None,
            Make::CoreModule(make) => Some(make(64 << 20)),
        }
    }
}

/// All four artifacts, compiled.
///
/// # Panics
///
/// If one is missing or no WebAssembly.
#[must_use]
pub fn makers() -> Vec<Maker> {
    let engine = Engine::default();
    WORLDS
        .into_iter()
        .flat_map(|world| {
            [
                component::maker(&engine, world),
                core_module::maker(&engine, world),
            ]
        })
        .collect()
}

/// The folder of the artifacts.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../guest/artifacts"
    ))
}

/// The bytes of an artifact.
///
/// # Panics
///
/// If there is no such file.
#[must_use]
pub fn bytes(file: &str) -> Vec<u8> {
    fs::read(folder().join(file)).expect("an artifact; scripts/build-guest makes them")
}

/// A store that gives this answer to everything.
fn always(answer: &Answer) -> Store {
    let answer = answer.clone();
    Box::new(move |_| answer.clone())
}

/// What an instance shares with its imports.
struct State {
    store: Store,
    asked: Vec<Question>,
    most: usize,
    memory: usize,
}

impl State {
    fn new(most: usize) -> Self {
        Self {
            store: always(&Ok(Value::Nothing)),
            asked: Vec::new(),
            most,
            memory: 0,
        }
    }

    /// Gets ready for a call over this store.
    fn begin(&mut self, store: Store) {
        self.store = store;
        self.asked.clear();
    }

    fn ask(&mut self, question: Question) -> Answer {
        let answer = (self.store)(&question);
        self.asked.push(question);
        answer
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let allowed = desired <= self.most;
        if allowed {
            self.memory = desired;
        }
        Ok(allowed)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(true)
    }
}
