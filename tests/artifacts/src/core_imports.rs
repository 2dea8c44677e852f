//! What a core module imports, through the canonical ABI by hand.

use crate::{State, World};
use babelqueue_guard_logic::types::{ClaimOutcome, StoreError};
use envelope_corpus::recording::{Question, Value};
use wasmtime::{AsContext, AsContextMut, Caller, Engine, Extern, Linker, Memory, TypedFunc};

/// `cabi_realloc`: the old place and size, the alignment, the new size.
pub(crate) type Realloc = TypedFunc<(u32, u32, u32, u32), u32>;

/// Links every function of the world's imports, and no other.
pub(crate) fn linker(engine: &Engine, world: World) -> Linker<State> {
    let mut linker = Linker::new(engine);
    for (interface, functions) in world.imports() {
        for &name in *functions {
            let linked = match name {
                // With a token or a step as the second argument.
                "renew" | "complete" | "release" | "set-once" => linker.func_wrap(
                    interface,
                    name,
                    move |caller: Caller<'_, State>,
                          id: u32,
                          id_len: u32,
                          other: u32,
                          other_len: u32,
                          ret: u32| {
                        import(caller, name, &[(id, id_len), (other, other_len)], ret)
                    },
                ),
                _ => linker.func_wrap(
                    interface,
                    name,
                    move |caller: Caller<'_, State>, id: u32, id_len: u32, ret: u32| {
                        import(caller, name, &[(id, id_len)], ret)
                    },
                ),
            };
            linked.expect("a new function");
        }
    }
    linker
}

/// Notes the question, and writes the answer to where the guest wants it.
fn import(
    mut caller: Caller<'_, State>,
    function: &str,
    arguments: &[(u32, u32)],
    ret: u32,
) -> wasmtime::Result<()> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.expect("a memory");
    let arguments = arguments
        .iter()
        .map(|&(start, length)| read_text(&memory, &caller, start, length))
        .collect();
    let answer = caller.data_mut().ask(Question {
        function: function.to_owned(),
        arguments,
    });
    let realloc = caller
        .get_export("cabi_realloc")
        .and_then(Extern::into_func);
    let realloc: Realloc = realloc.expect("cabi_realloc").typed(&caller)?;
    let mut writer = Writer {
        context: &mut caller,
        memory,
        realloc,
    };
    // A claim's outcome holds 64-bit numbers, which moves what follows.
    let payload = ret + if function == "claim" { 8 } else { 4 };
    match answer {
        Ok(value) => {
            writer.byte(ret, 0);
            match value {
                Value::Nothing => {}
                Value::Bool(yes) => writer.byte(payload, u8::from(yes)),
                Value::Hold(hold) => writer.byte(payload, hold as u8),
                Value::Claim(ClaimOutcome::Won(lease)) => {
                    writer.byte(payload, 0);
                    writer.text(payload + 8, &lease.token)?;
                    writer.bytes(payload + 16, &lease.length_ms.to_le_bytes());
                }
                Value::Claim(ClaimOutcome::Busy(left_ms)) => {
                    writer.byte(payload, 1);
                    writer.bytes(payload + 8, &left_ms.to_le_bytes());
                }
                Value::Claim(ClaimOutcome::Done) => writer.byte(payload, 2),
            }
        }
        Err(error) => {
            writer.byte(ret, 1);
            let (case, text) = match error {
                StoreError::Unavailable(text) => (0, text),
                StoreError::Rejected(text) => (1, text),
            };
            writer.byte(payload, case);
            writer.text(payload + 4, &text)?;
        }
    }
    Ok(())
}

/// Writes into the memory of a guest.
pub(crate) struct Writer<C> {
    pub(crate) context: C,
    pub(crate) memory: Memory,
    pub(crate) realloc: Realloc,
}

impl<C: AsContextMut> Writer<C> {
    fn bytes(&mut self, at: u32, bytes: &[u8]) {
        let written = self.memory.write(&mut self.context, at as usize, bytes);
        written.expect("an address in the memory");
    }

    fn byte(&mut self, at: u32, byte: u8) {
        self.bytes(at, &[byte]);
    }

    /// Puts bytes where the guest says, for the guest to free.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> wasmtime::Result<(u32, u32)> {
        let length = u32::try_from(bytes.len()).expect("at most 4 GiB");
        let start = self.realloc.call(&mut self.context, (0, 0, 1, length))?;
        self.bytes(start, bytes);
        Ok((start, length))
    }

    fn text(&mut self, at: u32, text: &str) -> wasmtime::Result<()> {
        let (start, length) = self.copy(text.as_bytes())?;
        self.bytes(at, &start.to_le_bytes());
        self.bytes(at + 4, &length.to_le_bytes());
        Ok(())
    }
}

pub(crate) fn read_text(
    memory: &Memory,
    context: impl AsContext,
    start: u32,
    length: u32,
) -> String {
    let mut bytes = vec![0; length as usize];
    let read = memory.read(context, start as usize, &mut bytes);
    read.expect("an address in the memory");
    String::from_utf8(bytes).expect("a string is UTF-8")
}
