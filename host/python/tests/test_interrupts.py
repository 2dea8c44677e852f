"""A mark is not lost to whoever interrupts or cancels a caller (section 2)."""

from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
from typing import Any

import pytest
from conftest import envelope

from babelqueue_guard import AsyncGuard, Delivery, Guard, MemoryStore, Settled


class Interrupted(BaseException):
    """What the signal raises, wherever the main thread is."""


@pytest.fixture
def interrupting() -> Any:
    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


def stores() -> list[Any]:
    class InRemember(MemoryStore):
        """Is interrupted while the mark is being set, before anything was written."""

        tries = 0

        def remember(self, id: str) -> None:
            self.tries += 1
            if self.tries == 1:
                signal.raise_signal(signal.SIGUSR1)
            super().remember(id)

        def complete(self, id: str, token: str) -> bool:
            self.tries += 1
            if self.tries == 1:
                signal.raise_signal(signal.SIGUSR1)
            return super().complete(id, token)

    return [InRemember]


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.parametrize("kind", stores())
@pytest.mark.usefixtures("interrupting")
def test_interrupted_while_marking(kind: type[MemoryStore], claim: bool) -> None:
    store = kind()
    guard = Guard(store, claim=claim)
    with pytest.raises(Interrupted):
        guard.process(envelope(), lambda delivery: 1)
    assert store.seen("order-1")
    assert guard.process(envelope(), lambda delivery: 1).skipped


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.usefixtures("interrupting")
def test_interrupted_between_the_handlers_return_and_the_next_step(claim: bool) -> None:
    # A handler in C that has a signal pending when it returns: the interpreter takes
    # notice at once, before it could have executed anything of the guard's.
    class Delivered:
        @staticmethod
        def from_param(delivery: object) -> ctypes.c_int:
            return ctypes.c_int(signal.SIGUSR1)

    handler: Any = ctypes.PyDLL(None)["raise"]
    handler.argtypes = [Delivered]
    store = MemoryStore()
    guard = Guard(store, claim=claim)
    with pytest.raises(Interrupted):
        guard.process(envelope(), handler)
    assert store.seen("order-1"), "it had succeeded"


@pytest.mark.parametrize("claim", [False, True])
@pytest.mark.usefixtures("interrupting")
def test_interrupted_inside_the_handler(claim: bool) -> None:
    store = MemoryStore()
    guard = Guard(store, claim=claim)
    with pytest.raises(Interrupted):
        guard.process(envelope(), lambda delivery: signal.raise_signal(signal.SIGUSR1))
    assert not store.seen("order-1")
    assert guard.process(envelope(), lambda delivery: 1).marked, "and no lease is left"


@pytest.mark.usefixtures("interrupting")
def test_interrupted_at_any_time() -> None:
    """Signals in quick succession: whatever has succeeded is marked, and nothing breaks."""
    store = MemoryStore()
    guard = Guard(store)
    interrupts = 0
    # Its `append` is a handler that a signal finds either not called or at its end.
    ended: list[Delivery] = []
    before = signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGUSR1))
    try:
        for n in range(3000):
            id = f"id-{n}"
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (n % 40 + 1))
                guard.process(envelope(id), ended.append)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 100
    assert [delivery.id for delivery in ended if not store.seen(delivery.id or "")] == []
    assert guard.process(envelope("after"), lambda delivery: delivery.id).value == "after"


class Slow:
    """An asynchronous store whose mark takes its time."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self.marking = asyncio.Event()
        self.tries = 0

    async def seen(self, id: str) -> bool:
        return id in self.marks

    async def remember(self, id: str) -> None:
        self.tries += 1
        self.marking.set()
        await asyncio.sleep(0.1)
        self.marks.add(id)

    async def forget(self, id: str) -> None:
        self.marks.discard(id)


def test_cancelled_while_marking() -> None:
    async def main() -> None:
        store = Slow()
        guard = AsyncGuard(store)
        task = asyncio.create_task(guard.process(envelope(), lambda delivery: 1))
        await store.marking.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done(), "the cancellation waits for the mark"
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.marks == {"order-1"}
        assert store.tries == 1

    asyncio.run(main())


def test_cancelled_by_a_timeout() -> None:
    async def main() -> None:
        store = Slow()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(AsyncGuard(store).process(envelope(), lambda delivery: 1), 0.03)
        assert store.marks == {"order-1"}

    asyncio.run(main())


def test_an_event_loop_that_shuts_down() -> None:
    """It cancels every task, that of the mark included: it is set once more."""
    stores: list[Slow] = []

    async def main() -> None:
        stores.append(Slow())
        guard = AsyncGuard(stores[0])
        worker = asyncio.create_task(guard.process(envelope(), lambda delivery: 1))
        await stores[0].marking.wait()
        assert not worker.done()

    asyncio.run(main())
    assert stores[0].marks == {"order-1"}
    assert stores[0].tries == 2


def test_cancelled_while_the_store_is_asked() -> None:
    class Stuck(Slow):
        async def seen(self, id: str) -> bool:
            self.marking.set()
            await asyncio.sleep(10)
            return False

    async def main() -> None:
        store = Stuck()
        guard = AsyncGuard(store)
        task = asyncio.create_task(guard.process(envelope(), lambda delivery: pytest.fail("ran")))
        await store.marking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_mark_that_fails_after_a_cancellation_is_no_lost_cancellation() -> None:
    class Failing(Slow):
        async def remember(self, id: str) -> None:
            self.marking.set()
            await asyncio.sleep(0.05)
            raise OSError("gone")

    async def main() -> None:
        store = Failing()
        task = asyncio.create_task(AsyncGuard(store).process(envelope(), lambda delivery: 1))
        await store.marking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_other_threads_settle_as_ever_while_the_main_one_is_interrupted() -> None:
    store = MemoryStore()
    guard = Guard(store, claim=True)
    results: list[Settled] = []
    threads = [
        threading.Thread(
            target=lambda n=n: results.append(
                guard.process(envelope(f"id-{n}"), lambda delivery: 1).settled
            )
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [Settled.MARKED] * 4
