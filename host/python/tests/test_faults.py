"""Traps, limits, growth, forks and threads: what the component's runtime can do to a host."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
import wasmtime
from conftest import envelope

from babelqueue_guard import Guard, GuardError, KnownId, MemoryStore, _decider, _guest

HOSTILE = Path(__file__).with_name("hostile.wat")


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> Guard:
    core = bytes(wasmtime.wat2wasm(HOSTILE.read_text()))
    monkeypatch.setattr(
        _decider, "runtime", lambda world, max_body: _guest.Runtime(world, max_body, core)
    )
    return Guard(MemoryStore())


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (100, "out of bounds memory access"),
        (101, "unreachable"),
        (102, "call stack exhausted"),
        (103, "integer divide by zero"),
        (104, "unreachable"),
        (105, "unreachable"),
        (106, "out of bounds memory access"),
    ],
)
def test_a_trap_is_the_guards_error_and_the_next_delivery_is_decided(
    hostile: Guard, length: int, why: str
) -> None:
    def never(delivery: object) -> None:
        pytest.fail("the handler was called")

    for _ in range(3):
        with pytest.raises(GuardError, match=why):
            hostile.process(b"x" * length, never)
        assert hostile.process(b"x" * 7, lambda delivery: delivery.reason).value == "malformed"
    for call in (lambda: hostile.forget("a"), lambda: hostile.process(KnownId("a"), never)):
        with pytest.raises(GuardError, match="unreachable"):
            call()
    assert hostile.process(b"", lambda delivery: 1).ran


def test_a_broken_instance_is_not_used_again(hostile: Guard) -> None:
    idle = hostile._decider._runtime._idle
    assert hostile.process(b"x", lambda delivery: 1).ran
    (first,) = idle
    with pytest.raises(GuardError):
        hostile.decide(b"x" * 101)
    assert idle == []
    assert hostile.process(b"x", lambda delivery: 1).ran
    assert len(idle) == 1
    assert idle[0] is not first


def test_a_large_body_leaves_no_large_instance_behind() -> None:
    guard = Guard(MemoryStore())
    body = b'{"meta":{"id":"a"},"x":"%s"}' % (b"y" * 3_000_000)
    idle = guard._decider._runtime._idle
    idle.clear()
    for _ in range(20):
        assert guard.identify(body).id == "a"
    assert all(instance.room < 2 * _guest.LARGE for instance in idle)


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory is in use")
def test_two_hundred_thousand_calls_leave_nothing_behind() -> None:
    calls = int(os.environ.get("BQ_GUARD_CALLS", "200000"))
    store = MemoryStore(max_entries=1000)
    plain, claiming = Guard(store), Guard(store, claim=True)

    def run(first: int, calls: int) -> None:
        for n in range(first, first + calls // 5):
            body = envelope(f"order-{n}")
            plain.decide(body)
            plain.process(body, lambda delivery: delivery.id)
            claiming.process(body, lambda delivery: delivery.id)
            claiming.process(envelope(f"claimed-{n}"), lambda delivery: delivery.once("step"))
            with pytest.raises(ZeroDivisionError):
                claiming.process(envelope(f"failed-{n}"), lambda delivery: 1 / 0)

    run(0, 20_000)
    before = resident()
    run(20_000, calls)
    # One leaked body or result for each call would be a hundred times this.
    assert resident() - before < 512 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory is in use")
def test_traps_leave_nothing_behind(hostile: Guard) -> None:
    def run(traps: int) -> None:
        for _ in range(traps):
            with pytest.raises(GuardError):
                hostile.decide(b"x" * 101)

    run(200)
    before = resident()
    run(1000)
    assert resident() - before < 2 * 1024 * 1024


def test_large_bodies_from_many_threads() -> None:
    guard = Guard(MemoryStore())
    wrong: list[Any] = []

    def work(thread: int) -> None:
        for n in range(20):
            id = f"{thread}-{n}"
            body = b'{"x":"%s","meta":{"id":"%s"}}' % (
                b"y" * (_guest.LARGE - 100 + 50 * n),
                id.encode(),
            )
            if guard.identify(body).id != id:
                wrong.append(id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def run_script(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fault_handler_that_is_installed_later_does_not_make_traps_fatal() -> None:
    assert "decided" in run_script(
        f"""
        import faulthandler, wasmtime
        from babelqueue_guard import Guard, GuardError, MemoryStore, _decider, _guest
        core = bytes(wasmtime.wat2wasm(open({str(HOSTILE)!r}).read()))
        _decider.runtime = lambda world, limit: _guest.Runtime(world, limit, core)
        guard = Guard(MemoryStore())
        faulthandler.enable()
        for length in (100, 101, 102, 103):
            try:
                guard.decide(b"x" * length)
            except GuardError:
                continue
            raise SystemExit("no error")
        guard.decide(b"x")
        print("decided")
        """
    )


def test_forked_children_decide_and_compile() -> None:
    assert (
        run_script(
            """
        import os
        from babelqueue_guard import Guard, KnownId, MemoryStore
        guard = Guard(MemoryStore(lease_ms=300), claim=True)
        with_thread = guard.process(KnownId("parent"), lambda delivery: 1)
        for child in range(3):
            if os.fork() == 0:
                def slow(delivery):
                    import time
                    time.sleep(0.7)
                    return delivery.lease_lost
                renewed = guard.process(KnownId("child"), slow)
                compiled = Guard(MemoryStore(), max_body=5_000_000 + child)
                ran = compiled.process(KnownId("x"), lambda delivery: 1)
                os._exit(0 if renewed.marked and not renewed.value and ran.marked else 1)
        for child in range(3):
            pid, status = os.wait()
            assert status == 0, status
        assert guard.process(KnownId("after"), lambda delivery: 1).marked
        print("done")
        """
        )
        == "done\n"
    )
