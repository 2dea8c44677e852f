"""Runs the core modules of the guard, without a Python function being called from them.

The shared library of the ``wasmtime`` package does the work. Its public API sets
everything up; the calls themselves go through ctypes with arguments that are
prepared once, since building them for each call would cost more than the decision.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from functools import lru_cache
from importlib import resources
from typing import Literal, NamedTuple

import wasmtime
from wasmtime import _ffi

from .errors import GuardError

World = Literal["plain", "claiming"]

#: What comes out of a decision, beside the reasons 0 to 2 of a run without an id.
RUN_SEEN, RUN_LEASED, SKIP, PARK = 3, 4, 5, 6

#: What comes out of the other calls where the guard refuses its arguments.
UNAVAILABLE, REJECTED = 64, 65

#: The questions that the core asks, by the driver's numbers.
QUESTIONS = (
    None,
    "seen",
    "remember",
    "forget",
    "claim",
    "renew",
    "complete",
    "release",
    "set_once",
)

#: What is passed from here on lets other threads run meanwhile. A call that gives up
#: the GIL waits, beside a thread that computes, for a whole switch interval to get it
#: back; a smaller body is decided in a fraction of that. An instance begins with room
#: for this much, and is not kept when it had to grow: WebAssembly memory never shrinks.
LARGE = 256 * 1024

_PAGE = 65_536
_SECOND = 2_048
_INBOX = 65_536
#: The length of a UUID: nearly every id.
_USUAL = 36

_library = str(_ffi.filename)
# Two views of one function: the first keeps the GIL during the call.
_call_holding = ctypes.PyDLL(_library).wasmtime_func_call_unchecked
_call_releasing = ctypes.CDLL(_library).wasmtime_func_call_unchecked
for _function in (_call_holding, _call_releasing):
    _function.restype = ctypes.c_void_p


def _argument(value: int) -> object:
    """A pointer, or a size, as the argument of a call.

    Of all that ctypes takes, this is what it has nothing left to convert in: a call with
    five of them takes two thirds of the time.
    """
    return ctypes.byref(ctypes.c_char.from_address(value))


class Reply(NamedTuple):
    """What a call gave, and the question that the core asked during it."""

    value: int
    question: str | None
    id: str
    second: str


class _Call:
    """An export of the driver, with the memory that its arguments are passed in."""

    __slots__ = ("args", "args_at", "at", "count", "func")

    def __init__(self, func: object, parameters: int) -> None:
        if not isinstance(func, wasmtime.Func):
            raise TypeError("the driver exports functions under these names")
        self.func = func
        self.at = _argument(ctypes.addressof(func._func))
        # One slot, of 16 bytes, for each parameter; the result takes the first.
        self.args = array("q", [0, 0] * parameters)
        self.args_at = _argument(self.args.buffer_info()[0])
        self.count = _argument(parameters)


class Instance:
    """One instance of the core, its driver and the desk between them. Not thread-safe."""

    __slots__ = (
        "_desk",
        "_store",
        "_trap",
        "calls",
        "context",
        "decide",
        "inbox",
        "outbox",
        "room",
        "seen",
        "trap_at",
        "usual",
    )

    def __init__(self, runtime: Runtime) -> None:
        self._store = store = wasmtime.Store(runtime.engine)
        store.set_limits(memory_size=runtime.memory_limit)
        shim = wasmtime.Instance(store, runtime.shim, []).exports(store)
        core = wasmtime.Instance(
            store, runtime.core, [shim[needed.name or ""] for needed in runtime.core.imports]
        ).exports(store)
        driver = wasmtime.Instance(
            store,
            runtime.driver,
            [
                (core if needed.module == "core" and needed.name in core else shim)[
                    needed.name or ""
                ]
                for needed in runtime.driver.imports
            ],
        ).exports(store)

        self.context = _argument(ctypes.addressof(store._context().contents))
        self._trap = array("Q", [0])
        self.trap_at = _argument(self._trap.buffer_info()[0])
        types = {export.name: export.type for export in runtime.driver.exports}
        self.calls = {
            name: _Call(driver[name], len(type.params))
            for name, type in types.items()
            if isinstance(type, wasmtime.FuncType)
        }
        # What is called most has its other arguments in place once and for all.
        self.decide = self.calls["decide"]
        self.decide.args[2] = runtime.suppose
        self.seen = _Call(driver["decide-id"], 4)
        self.seen.args[2] = 1

        desk = driver["desk"]
        if not isinstance(desk, wasmtime.Memory):
            raise TypeError("the driver exports its desk")
        self._desk = desk
        # The memory never moves, so one view serves for all that it may grow to. The
        # store, which this object keeps, is what keeps the memory.
        at = ctypes.addressof(desk.data_ptr(store).contents)
        whole = (ctypes.c_ubyte * runtime.memory_limit).from_address(at)
        self.outbox = memoryview(whole).cast("B")
        self.inbox = self.outbox[_INBOX:]
        self.usual = self.outbox[:_USUAL]
        self.room = desk.data_len(store) - _INBOX

    def grow(self, size: int) -> None:
        """Makes room for something larger than what there is room for."""
        pages = -(-(size - self.room) // _PAGE)
        try:
            self._desk.grow(self._store, pages)
        except wasmtime.WasmtimeError as error:
            raise GuardError(f"no memory for a body of {size} bytes: {error}") from error
        self.room += pages * _PAGE

    def failure(self, error: int | None) -> GuardError:
        """What the runtime says of a call that did not come to its end."""
        message = _ffi.wasm_byte_vec_t()
        if error is not None:
            pointer = ctypes.cast(error, ctypes.POINTER(_ffi.wasmtime_error_t))
            _ffi.wasmtime_error_message(pointer, ctypes.byref(message))
            _ffi.wasmtime_error_delete(pointer)
        else:
            trap = ctypes.cast(self._trap[0], ctypes.POINTER(_ffi.wasm_trap_t))
            _ffi.wasm_trap_message(trap, ctypes.byref(message))
            _ffi.wasm_trap_delete(trap)
        text = ctypes.string_at(message.data, message.size).rstrip(b"\0").decode("utf-8", "replace")
        _ffi.wasm_byte_vec_delete(ctypes.byref(message))
        return GuardError(f"the component could not decide: {text.strip()}")


class Runtime:
    """A compiled world, and the instances of it that are idle.

    An instance runs one call at a time, and one whose call did not come to its end is
    broken without saying so. Both are seen to alike: an instance is among the idle ones
    only if it has come back from its last call.
    """

    def __init__(self, world: World, max_body: int, core: bytes | None = None) -> None:
        # The body, and what the core needs for itself.
        self.memory_limit = -(-max_body // _PAGE) * _PAGE + 1024 * 1024
        config = wasmtime.Config()
        # The views of the desk point at it for good.
        config.memory_may_move = False
        config.memory_reservation = self.memory_limit
        config.memory_guard_size = 0
        # Threads of the compiler do not exist in a forked child, which would wait for them.
        config.parallel_compilation = False
        config.max_wasm_stack = 128 * 1024
        # A fault handler that somebody installs later would end the process at a trap.
        config.signals_based_traps = False
        self.engine = wasmtime.Engine(config)
        package = resources.files(__package__)
        if core is None:
            core = (package / "artifacts" / f"{world}.core.wasm").read_bytes()
        self.core = wasmtime.Module(self.engine, core)
        self.shim = wasmtime.Module(self.engine, (package / "shim.wat").read_text())
        self.driver = wasmtime.Module(self.engine, (package / "driver.wat").read_text())
        #: The answer that a decision supposes: "not seen", or "busy".
        self.suppose = 0 if world == "plain" else 1
        self._idle: list[Instance] = []

    def decide(self, body: bytes) -> tuple[int, str]:
        """Decides on a body that is not large: what came out, and the id asked about.

        The same as :meth:`call` does for anything, without what this does not need.
        """
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._fresh()
        size = len(body)
        instance.inbox[:size] = body
        call = instance.decide
        args = call.args
        args[0] = size
        error = _call_holding(instance.context, call.at, call.args_at, call.count, instance.trap_at)
        out = args[0]
        if out >= 0:
            raise instance.failure(error)
        length = out >> 16 & 0xFFFF
        id = str(instance.usual if length == _USUAL else instance.outbox[:length], "utf-8")
        self._idle.append(instance)
        return out & 0xFF, id

    def decide_seen(self, id: str) -> int:
        """Decides on an id, knowing that it was seen: what came out."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._fresh()
        data = id.encode()
        size = len(data)
        instance.inbox[:size] = data
        call = instance.seen
        args = call.args
        args[0] = size
        error = _call_holding(instance.context, call.at, call.args_at, call.count, instance.trap_at)
        out = args[0]
        if out >= 0:
            raise instance.failure(error)
        self._idle.append(instance)
        return out & 0xFF

    def call(self, name: str, strings: bytes, *numbers: int) -> Reply:
        """Calls an export of the driver. What it is passed lies one behind the other."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._fresh()
        size = len(strings)
        if size > instance.room:
            instance.grow(size)
        instance.inbox[:size] = strings
        call = instance.calls[name]
        args = call.args
        for slot, number in enumerate(numbers):
            args[2 * slot] = number
        function = _call_holding if size < LARGE else _call_releasing
        error = function(instance.context, call.at, call.args_at, call.count, instance.trap_at)
        out = args[0]
        if out >= 0:
            raise instance.failure(error)
        outbox = instance.outbox
        reply = Reply(
            out & 0xFF,
            QUESTIONS[out >> 8 & 0xFF],
            str(outbox[: out >> 16 & 0xFFFF], "utf-8"),
            str(outbox[_SECOND : _SECOND + (out >> 32 & 0xFFFF)], "utf-8"),
        )
        if size < LARGE:
            self._idle.append(instance)
        return reply

    def _fresh(self) -> Instance:
        try:
            return Instance(self)
        except wasmtime.WasmtimeError as error:
            raise GuardError(f"no instance of the component could be made: {error}") from error


_compiling = threading.Lock()


@lru_cache(maxsize=8)
def _runtime(world: World, max_body: int) -> Runtime:
    return Runtime(world, max_body)


def runtime(world: World, max_body: int) -> Runtime:
    """The one runtime of this process for a world and a limit; compiled when first asked for."""
    with _compiling:
        return _runtime(world, max_body)
