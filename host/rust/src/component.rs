//! The compiled component and its pool of instances.
//!
//! A call takes an instance out of the pool, hands it the answer that it is
//! going to ask for, and puts it back microseconds later together with the
//! question that it asked. No instance ever waits for a store; the module
//! [`drive`](crate::drive) makes decisions out of such calls.

mod call;

pub(crate) use call::{Answer, Call, Question};

use crate::bindings::babelqueue::guard::{claims, marker, store, types as wit};
use crate::bindings::exports::babelqueue::guard::{guard, steps};
use crate::error::{Error, GuardError, StoreError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wasmtime::component::{HasSelf, InstancePre, Linker};
use wasmtime::{Config, Engine, Store};

/// What was built from the guard's source, byte for byte.
pub mod artifacts {
    /// The component for the WIT world `plain`.
    pub const PLAIN_COMPONENT: &[u8] = include_bytes!("../artifacts/plain.component.wasm");
    /// The component for the WIT world `claiming`.
    pub const CLAIMING_COMPONENT: &[u8] = include_bytes!("../artifacts/claiming.component.wasm");
    /// The core module for the WIT world `plain`, for runtimes without the
    /// component model.
    pub const PLAIN_CORE: &[u8] = include_bytes!("../artifacts/plain.core.wasm");
    /// The core module for the WIT world `claiming`.
    pub const CLAIMING_CORE: &[u8] = include_bytes!("../artifacts/claiming.core.wasm");
    /// The WIT package that describes them, as one file.
    pub const WIT: &str = concat!(
        include_str!("../wit/types.wit"),
        "\n",
        include_str!("../wit/store.wit"),
        "\n",
        include_str!("../wit/claims.wit"),
        "\n",
        include_str!("../wit/marker.wit"),
        "\n",
        include_str!("../wit/guard.wit"),
        "\n",
        include_str!("../wit/steps.wit"),
        "\n",
        include_str!("../wit/worlds.wit"),
    );
}

/// A body longer than this is refused unless another limit is set: 16 MiB.
pub const DEFAULT_BODY_LIMIT: usize = 16 << 20;

/// An instance's memory grows no further unless another limit is set: 64 MiB.
pub const DEFAULT_MEMORY_LIMIT: usize = 64 << 20;

/// An instance whose memory has grown beyond this is not kept, since memory
/// of a guest never shrinks.
const KEEP_MEMORY: usize = 1 << 20;

/// How often the clock of a component with a deadline ticks.
const TICK: Duration = Duration::from_millis(10);

/// Limits for one component.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest body that is looked at, in bytes.
    pub body: usize,
    /// How far an instance's memory may grow, in bytes. A body takes its own
    /// length, and an eighth of it again where it is nested all through.
    pub memory: usize,
    /// How long one call may take before it traps, in steps of 10 ms. `None`
    /// does not look at the time.
    pub deadline: Option<Duration>,
}

impl Limits {
    /// The limits for our own components: bodies up to 16 MiB, and no
    /// deadline, for they take time linear in the body.
    pub const TRUSTED: Self = Self {
        body: DEFAULT_BODY_LIMIT,
        memory: DEFAULT_MEMORY_LIMIT,
        deadline: None,
    };

    /// The limits for a component that somebody else has made: bodies up to
    /// 16 MiB, and one second a call.
    pub const FOREIGN: Self = Self {
        body: DEFAULT_BODY_LIMIT,
        memory: DEFAULT_MEMORY_LIMIT,
        deadline: Some(Duration::from_secs(1)),
    };
}

/// A component that decides, ready to be called from any number of threads.
///
/// Clones share the compiled code and the pool. The pool holds as many
/// instances as were ever inside a call at one moment: at most the number of
/// threads, however many deliveries are in flight.
#[derive(Clone)]
pub struct Component(Arc<Inner>);

/// Boxed, so that taking one out does not copy it.
type Pool = Vec<Box<Instance>>;

struct Inner {
    component: wasmtime::component::Component,
    pre: InstancePre<Call>,
    guard: guard::GuestIndices,
    steps: Option<steps::GuestIndices>,
    pool: Mutex<Pool>,
    limits: Limits,
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Component")
            .field("limits", &self.0.limits)
            .field("pooled", &self.pooled())
            .finish_non_exhaustive()
    }
}

impl Component {
    /// Our component for a store with a seen-set, compiled once a process.
    ///
    /// # Errors
    ///
    /// This machine cannot run compiled WebAssembly.
    pub fn plain() -> Result<Self, GuardError> {
        static PLAIN: OnceLock<Result<Component, GuardError>> = OnceLock::new();
        PLAIN
            .get_or_init(|| Self::from_bytes(artifacts::PLAIN_COMPONENT, Limits::TRUSTED))
            .clone()
    }

    /// Our component for a store with claims, compiled once a process.
    ///
    /// # Errors
    ///
    /// This machine cannot run compiled WebAssembly.
    pub fn claiming() -> Result<Self, GuardError> {
        static CLAIMING: OnceLock<Result<Component, GuardError>> = OnceLock::new();
        CLAIMING
            .get_or_init(|| Self::from_bytes(artifacts::CLAIMING_COMPONENT, Limits::TRUSTED))
            .clone()
    }

    /// Compiles a component that exports `babelqueue:guard/guard`, and
    /// `steps` if it can, and imports no more than the package's interfaces.
    ///
    /// # Errors
    ///
    /// [`GuardError::Component`]: the bytes are no such component.
    pub fn from_bytes(bytes: &[u8], limits: Limits) -> Result<Self, GuardError> {
        let engine = engine(limits)?;
        let component = loaded(wasmtime::component::Component::new(&engine, bytes))?;
        Self::link(component, limits)
    }

    /// Loads what [`precompiled`](Self::precompiled) gave, in a fraction of
    /// the time that compiling takes.
    ///
    /// # Safety
    ///
    /// The bytes are native code and are run as such. They must come from
    /// [`precompiled`](Self::precompiled) and have been out of reach of anybody
    /// who may not run code in this process.
    ///
    /// # Errors
    ///
    /// [`GuardError::Component`]: they are of another version, or were made
    /// with or without a deadline where these limits say otherwise.
    pub unsafe fn from_precompiled(bytes: &[u8], limits: Limits) -> Result<Self, GuardError> {
        let engine = engine(limits)?;
        // SAFETY: passed on to the caller.
        let component =
            loaded(unsafe { wasmtime::component::Component::deserialize(&engine, bytes) })?;
        Self::link(component, limits)
    }

    /// The compiled code, for [`from_precompiled`](Self::from_precompiled) on
    /// the same kind of machine with the same version of this crate.
    ///
    /// # Errors
    ///
    /// [`GuardError::Component`]: the code cannot be written out.
    pub fn precompiled(&self) -> Result<Vec<u8>, GuardError> {
        loaded(self.0.component.serialize())
    }

    fn link(component: wasmtime::component::Component, limits: Limits) -> Result<Self, GuardError> {
        let engine = component.engine();
        let mut linker = Linker::<Call>::new(engine);
        loaded(store::add_to_linker::<_, HasSelf<_>>(&mut linker, |call| {
            call
        }))?;
        loaded(claims::add_to_linker::<_, HasSelf<_>>(
            &mut linker,
            |call| call,
        ))?;
        loaded(marker::add_to_linker::<_, HasSelf<_>>(
            &mut linker,
            |call| call,
        ))?;
        let pre = loaded(linker.instantiate_pre(&component))?;
        let guard = loaded(guard::GuestIndices::new(&pre))?;
        let steps = steps::GuestIndices::new(&pre).ok();
        if limits.deadline.is_some() {
            tick(engine)?;
        }
        Ok(Self(Arc::new(Inner {
            component,
            pre,
            guard,
            steps,
            pool: Mutex::default(),
            limits,
        })))
    }

    /// How many instances wait in the pool.
    #[must_use]
    pub fn pooled(&self) -> usize {
        self.pool().len()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Whether it exports `steps`.
    pub(crate) fn has_steps(&self) -> bool {
        self.0.steps.is_some()
    }

    /// Calls one function in an instance of its own, and has what it returned
    /// taken together with the question it asked. If it asks one, it gets
    /// `answer`.
    ///
    /// An instance that traps, or whose reply cannot be taken, goes no further
    /// than this: no other delivery meets what it has left behind.
    pub(crate) fn call<R, T>(
        &self,
        answer: Answer,
        function: impl FnOnce(
            &Exports,
            &mut Store<Call>,
        ) -> wasmtime::Result<Result<R, wit::StoreError>>,
        take: impl FnOnce(R, Option<Question>) -> Result<T, GuardError>,
    ) -> Result<T, Error> {
        let pooled = self.pool().pop();
        let mut instance = match pooled {
            Some(instance) => instance,
            None => self.0.instantiate()?,
        };
        instance.store.data_mut().begin(answer);
        if let Some(deadline) = self.0.limits.deadline {
            instance.store.set_epoch_deadline(ticks(deadline));
        }
        let result = function(&instance.exports, &mut instance.store)
            .map_err(|error| GuardError::Trap(format!("{error:#}")))?;
        let call = instance.store.data_mut();
        let question = call.end()?;
        let taken = match result {
            Ok(value) => Ok(take(value, question)?),
            Err(error) => Err(StoreError::from(error).into()),
        };
        if call.memory() <= KEEP_MEMORY {
            self.pool().push(instance);
        }
        taken
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        // Nothing that can panic runs under the lock.
        self.0.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn instantiate(&self) -> Result<Box<Instance>, GuardError> {
        let mut store = Store::new(self.component.engine(), Call::within(self.limits.memory));
        store.limiter(|call| call);
        if self.limits.deadline.is_some() {
            // Without one, the very first instruction would be interrupted.
            store.set_epoch_deadline(ticks(TICK * 100));
        }
        let instance = loaded(self.pre.instantiate(&mut store))?;
        let exports = Exports {
            guard: loaded(self.guard.load(&mut store, &instance))?,
            steps: match &self.steps {
                Some(steps) => Some(loaded(steps.load(&mut store, &instance))?),
                None => None,
            },
        };
        Ok(Box::new(Instance { store, exports }))
    }
}

struct Instance {
    store: Store<Call>,
    exports: Exports,
}

/// What a component exports, its functions looked up once.
pub(crate) struct Exports {
    pub(crate) guard: guard::Guest,
    pub(crate) steps: Option<steps::Guest>,
}

fn engine(limits: Limits) -> Result<Engine, GuardError> {
    let mut config = Config::new();
    // No call is ever suspended; support for it makes every call two to three
    // times dearer.
    config.concurrency_support(false);
    config.epoch_interruption(limits.deadline.is_some());
    loaded(Engine::new(&config))
}

fn ticks(deadline: Duration) -> u64 {
    let ticks = deadline.as_nanos().div_ceil(TICK.as_nanos());
    // One more, for the current tick has begun before the call.
    u64::try_from(ticks)
        .unwrap_or(u64::MAX / 2)
        .saturating_add(1)
}

/// Lets an engine's clock tick for as long as the engine lives.
fn tick(engine: &Engine) -> Result<(), GuardError> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("bq-guard-clock".into())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        })
        .map_err(|error| GuardError::Component(format!("no thread for its clock: {error}")))?;
    Ok(())
}

/// What wasmtime has made of a component, or why it cannot be used.
fn loaded<T>(made: wasmtime::Result<T>) -> Result<T, GuardError> {
    made.map_err(|error| GuardError::Component(format!("{error:#}")))
}
