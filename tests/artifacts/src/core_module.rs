//! An artifact as a core module, called through the canonical ABI by hand, as
//! the runtimes without the component model do.

use crate::core_imports::{Realloc, Writer, linker, read_text};
use crate::{Artifact, Call, Make, Maker, Reply, State, World, always, bytes};
use babelqueue_guard_logic::types::{
    Decision, FailOpen, Hold, Lease, Leased, Outcome, Parked, Settled, StoreError, Ticket,
};
use envelope_corpus::recording::{Answer, Outcomes};
use wasmtime::{Engine, Instance, Memory, Module, Store, Val, ValType};

/// An instance of a core module.
pub struct CoreModule {
    store: Store<State>,
    instance: Instance,
    memory: Memory,
    realloc: Realloc,
}

pub(crate) fn maker(engine: &Engine, world: World) -> Maker {
    let file = format!("{}.core.wasm", world.name());
    let module = Module::new(engine, bytes(&file)).expect("a core module");
    let engine = engine.clone();
    Maker {
        file,
        world,
        make: Make::CoreModule(Box::new(move |memory| {
            let mut store = Store::new(&engine, State::new(memory));
            store.limiter(|state| state);
            let linker = linker(&engine, world);
            let instance = linker
                .instantiate(&mut store, &module)
                .expect("an instance");
            let memory = instance.get_memory(&mut store, "memory").expect("a memory");
            let realloc = instance.get_typed_func(&mut store, "cabi_realloc");
            CoreModule {
                realloc: realloc.expect("cabi_realloc"),
                store,
                instance,
                memory,
            }
        })),
    }
}

impl CoreModule {
    /// Calls a function with arguments lowered already, and lifts its result.
    fn run(
        &mut self,
        name: &str,
        arguments: &[i64],
        call: &Call,
    ) -> wasmtime::Result<Outcomes<Reply>> {
        let function = self.instance.get_func(&mut self.store, name);
        let function = function.expect("an exported function");
        let arguments: Vec<Val> = function
            .ty(&self.store)
            .params()
            .zip(arguments)
            .map(|(kind, &argument)| match kind {
                ValType::I64 => Val::I64(argument),
                _ => Val::I32(u32::try_from(argument).expect("32 bits").cast_signed()),
            })
            .collect();
        let mut results = [Val::I32(0)];
        function.call(&mut self.store, &arguments, &mut results)?;
        let result = results[0].unwrap_i32();
        let reply = self.lift(result.cast_unsigned(), call);
        let post = format!("cabi_post_{name}");
        let post = self.instance.get_func(&mut self.store, &post);
        let post = post.expect("cabi_post_ of each function");
        post.call(&mut self.store, &results, &mut [])?;
        Ok((reply, self.store.data().asked.clone()))
    }

    fn lower_bytes(&mut self, bytes: &[u8]) -> wasmtime::Result<Vec<i64>> {
        let mut writer = Writer {
            context: &mut self.store,
            memory: self.memory,
            realloc: self.realloc.clone(),
        };
        let (start, length) = writer.copy(bytes)?;
        Ok(vec![i64::from(start), i64::from(length)])
    }

    /// The discriminant, then the five places that the cases share.
    fn lower_ticket(&mut self, ticket: &Ticket) -> wasmtime::Result<Vec<i64>> {
        let mut flat = match ticket {
            Ticket::Open(reason) => vec![0, *reason as i64],
            Ticket::Seen(id) => [vec![1], self.lower_bytes(id.as_bytes())?].concat(),
            Ticket::Leased(Leased { id, lease }) => {
                let id = self.lower_bytes(id.as_bytes())?;
                let token = self.lower_bytes(lease.token.as_bytes())?;
                let length = lease.length_ms.cast_signed();
                [vec![2], id, token, vec![length]].concat()
            }
        };
        flat.resize(6, 0);
        Ok(flat)
    }

    fn byte(&self, at: u32) -> u8 {
        self.memory.data(&self.store)[at as usize]
    }

    fn word(&self, at: u32) -> u32 {
        let mut bytes = [0; 4];
        let read = self.memory.read(&self.store, at as usize, &mut bytes);
        read.expect("an address in the memory");
        u32::from_le_bytes(bytes)
    }

    fn long(&self, at: u32) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }

    fn text(&self, at: u32) -> String {
        read_text(&self.memory, &self.store, self.word(at), self.word(at + 4))
    }

    fn lift(&self, at: u32, call: &Call) -> Result<Reply, StoreError> {
        let decides = matches!(
            call,
            Call::Decide(_) | Call::DecideText(_) | Call::DecideId(_)
        );
        let payload = at + if decides { 8 } else { 4 };
        match (self.byte(at), self.byte(payload)) {
            (0, case) => Ok(match call {
                Call::Forget(_) => Reply::Nothing,
                Call::Once(..) => Reply::Bool(case == 1),
                Call::Renew(_) => Reply::Hold(Hold::_lift(case)),
                Call::Settle(..) => Reply::Settled(match case {
                    0 => Settled::Nothing,
                    1 => Settled::Marked,
                    2 => Settled::MarkedLate,
                    3 => Settled::Released,
                    4 => Settled::LeaseLost,
                    other => panic!("no case of settled: {other}"),
                }),
                _ => Reply::Decision(match case {
                    0 => Decision::Run(self.lift_ticket(payload + 8)),
                    1 => Decision::Skip(self.text(payload + 8)),
                    2 => Decision::Park(Parked {
                        id: self.text(payload + 8),
                        left_ms: self.long(payload + 16),
                    }),
                    other => panic!("no case of decision: {other}"),
                }),
            }),
            (1, 0) => Err(StoreError::Unavailable(self.text(payload + 4))),
            (1, 1) => Err(StoreError::Rejected(self.text(payload + 4))),
            other => panic!("no result: {other:?}"),
        }
    }

    fn lift_ticket(&self, at: u32) -> Ticket {
        let payload = at + 8;
        match self.byte(at) {
            0 => Ticket::Open(FailOpen::_lift(self.byte(payload))),
            1 => Ticket::Seen(self.text(payload)),
            2 => Ticket::Leased(Leased {
                id: self.text(payload),
                lease: Lease {
                    token: self.text(payload + 8),
                    length_ms: self.long(payload + 16),
                },
            }),
            other => panic!("no case of ticket: {other}"),
        }
    }

    /// The same call as `decide-id`, `forget` or another of one string, with
    /// bytes that need not be UTF-8, as such a runtime might pass them.
    ///
    /// # Errors
    ///
    /// A trap.
    pub fn call_with_bytes(
        &mut self,
        call: &Call,
        id: &[u8],
        answer: &Answer,
    ) -> wasmtime::Result<Outcomes<Reply>> {
        self.store.data_mut().begin(always(answer));
        self.call_of_one_string(call, id)
    }

    fn call_of_one_string(&mut self, call: &Call, id: &[u8]) -> wasmtime::Result<Outcomes<Reply>> {
        let bytes = self.lower_bytes(id)?;
        match call {
            Call::DecideText(_) => {
                self.run("babelqueue:guard/guard@0.1.0#decide-text", &bytes, call)
            }
            Call::DecideId(_) => self.run("babelqueue:guard/guard@0.1.0#decide-id", &bytes, call),
            Call::Forget(_) => self.run("babelqueue:guard/guard@0.1.0#forget", &bytes, call),
            Call::Settle(_, outcome) => {
                let ticket = [1, bytes[0], bytes[1], 0, 0, 0, *outcome as i64];
                self.run("babelqueue:guard/guard@0.1.0#settle", &ticket, call)
            }
            other => panic!("not a call of one string: {other:?}"),
        }
    }
}

impl Artifact for CoreModule {
    fn call_over(&mut self, store: crate::Store, call: &Call) -> wasmtime::Result<Outcomes<Reply>> {
        self.store.data_mut().begin(store);
        match call {
            Call::Decide(body) => {
                let arguments = self.lower_bytes(body)?;
                self.run("babelqueue:guard/guard@0.1.0#decide", &arguments, call)
            }
            Call::DecideText(text) | Call::DecideId(text) | Call::Forget(text) => {
                self.call_of_one_string(call, text.as_bytes())
            }
            Call::Settle(ticket, outcome) => {
                let mut arguments = self.lower_ticket(ticket)?;
                arguments.push(match outcome {
                    Outcome::Succeeded => 0,
                    Outcome::Failed => 1,
                });
                self.run("babelqueue:guard/guard@0.1.0#settle", &arguments, call)
            }
            Call::Renew(ticket) => {
                let arguments = self.lower_ticket(ticket)?;
                self.run("babelqueue:guard/guard@0.1.0#renew", &arguments, call)
            }
            Call::Once(ticket, step) => {
                let ticket = self.lower_ticket(ticket)?;
                let step = self.lower_bytes(step.as_bytes())?;
                let arguments = [ticket, step].concat();
                self.run("babelqueue:guard/steps@0.1.0#once", &arguments, call)
            }
        }
    }

    fn memory(&self) -> usize {
        self.store.data().memory
    }
}
