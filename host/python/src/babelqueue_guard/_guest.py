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

#: Bodies from here on let other threads run meanwhile. A call that gives up the GIL
#: waits, beside a thread that computes, for a whole switch interval to get it back;
#: a smaller body is decided in a fraction of that.
RELEASE_GIL_FROM = 256 * 1024

#: An instance whose memory has grown for a body beyond this is not kept: WebAssembly
#: memory never shrinks.
KEEP_UP_TO = 1024 * 1024

_PAGE = 65_536
_SECOND = 2_048
_INBOX = 65_536

_library = str(_ffi.filename)
# Two views of one function: the first keeps the GIL during the call.
_call_holding = ctypes.PyDLL(_library).wasmtime_func_call_unchecked
_call_releasing = ctypes.CDLL(_library).wasmtime_func_call_unchecked
for _function in (_call_holding, _call_releasing):
    _function.restype = ctypes.c_void_p


class Reply(NamedTuple):
    """What a call gave, and the question that the core asked during it."""

    value: int
    question: str | None
    id: str
    second: str


class _Function:
    """An export of the driver, with the memory that its arguments are passed in."""

    __slots__ = ("args", "args_at", "at", "count", "func")

    def __init__(self, func: wasmtime.Func, parameters: int) -> None:
        self.func = func
        self.at = ctypes.c_void_p(ctypes.addressof(func._func))
        # One slot, of 16 bytes, for each parameter; the result takes the first.
        self.args = array("q", [0, 0] * parameters)
        self.args_at = ctypes.c_void_p(self.args.buffer_info()[0])
        self.count = ctypes.c_size_t(parameters)


class Instance:
    """One instance of the core, its driver and the desk between them. Not thread-safe."""

    __slots__ = (
        "_context",
        "_decide",
        "_desk",
        "_functions",
        "_keep",
        "_trap",
        "_trap_at",
        "inbox",
        "outbox",
        "room",
    )

    def __init__(self, runtime: Runtime) -> None:
        store = wasmtime.Store(runtime.engine)
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

        self._context = ctypes.cast(store._context(), ctypes.c_void_p)
        self._functions = {}
        for export in runtime.driver.exports:
            if isinstance(export.type, wasmtime.FuncType):
                func = driver[export.name]
                assert isinstance(func, wasmtime.Func)
                self._functions[export.name] = _Function(func, len(export.type.params))
        self._decide = self._functions["decide"]
        self._trap = array("Q", [0])
        self._trap_at = ctypes.c_void_p(self._trap.buffer_info()[0])

        desk = driver["desk"]
        assert isinstance(desk, wasmtime.Memory)
        self._desk = desk
        # The memory never moves, so one view serves for all that it may grow to.
        at = ctypes.addressof(desk.data_ptr(store).contents)
        whole = (ctypes.c_ubyte * runtime.memory_limit).from_address(at)
        self.outbox = memoryview(whole).cast("B")
        self.inbox = self.outbox[_INBOX:]
        self.room = desk.data_len(store) - _INBOX
        # The views do not keep what they look at.
        self._keep = store

    def decide(self, body: bytes, suppose: int) -> tuple[int, str]:
        """Decides on a body, supposing an answer: what came out, and the id asked about."""
        size = len(body)
        if size > self.room:
            self._grow(size)
        self.inbox[:size] = body
        decide = self._decide
        args = decide.args
        args[0] = size
        args[2] = suppose
        call = _call_holding if size < RELEASE_GIL_FROM else _call_releasing
        error = call(self._context, decide.at, decide.args_at, decide.count, self._trap_at)
        if error is not None or self._trap[0]:
            raise self._failure(error)
        out = args[0]
        return out & 0xFF, str(self.outbox[: (out >> 16) & 0xFFFF], "utf-8")

    def call(self, name: str, strings: bytes, *numbers: int) -> Reply:
        """Calls any export. ``strings`` is what the host passes, one behind the other."""
        size = len(strings)
        if size > self.room:
            self._grow(size)
        self.inbox[:size] = strings
        function = self._functions[name]
        args = function.args
        for slot, number in enumerate(numbers):
            args[2 * slot] = number
        call = _call_holding if size < RELEASE_GIL_FROM else _call_releasing
        error = call(self._context, function.at, function.args_at, function.count, self._trap_at)
        if error is not None or self._trap[0]:
            raise self._failure(error)
        out = args[0]
        outbox = self.outbox
        return Reply(
            out & 0xFF,
            QUESTIONS[(out >> 8) & 0xFF],
            str(outbox[: (out >> 16) & 0xFFFF], "utf-8"),
            str(outbox[_SECOND : _SECOND + (out >> 32)], "utf-8"),
        )

    def _grow(self, size: int) -> None:
        pages = -(-(size - self.room) // _PAGE)
        try:
            self._desk.grow(self._keep, pages)
        except wasmtime.WasmtimeError as error:
            raise GuardError(f"no memory for a body of {size} bytes: {error}") from error
        self.room += pages * _PAGE

    def _failure(self, error: int | None) -> GuardError:
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
            self._trap[0] = 0
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
        self.memory_limit = -(-max_body // _PAGE) * _PAGE + KEEP_UP_TO
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
        self.max_body = max_body
        self._idle: list[Instance] = []

    def decide(self, body: bytes, suppose: int) -> tuple[int, str]:
        """Decides on a body, supposing an answer: what came out, and the id asked about."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._fresh()
        decided = instance.decide(body, suppose)
        if instance.room <= KEEP_UP_TO:
            self._idle.append(instance)
        return decided

    def call(self, name: str, strings: bytes, *numbers: int) -> Reply:
        """Calls an export of the driver on an instance of its own."""
        try:
            instance = self._idle.pop()
        except IndexError:
            instance = self._fresh()
        reply = instance.call(name, strings, *numbers)
        if instance.room <= KEEP_UP_TO:
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
