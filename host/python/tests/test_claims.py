"""The guard that claims: parking, leases, renewal and their loss (section 3)."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from conftest import envelope, eventually

from babelqueue_guard import (
    AsyncDelivery,
    AsyncGuard,
    Busy,
    Delivery,
    Done,
    Guard,
    Lease,
    MemoryStore,
    Settled,
    StoreRejected,
    StoreUnavailable,
)
from babelqueue_guard.types import ClaimOutcome


def never(delivery: object) -> None:
    pytest.fail("the handler was called")


class Told(MemoryStore):
    """A store that answers and fails as it is told, and counts what it is asked."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.fails: dict[str, BaseException] = {}
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def _told(self, question: str) -> Any:
        self.asked.append(question)
        if question in self.fails:
            raise self.fails[question]
        return self.answers.get(question)

    def claim(self, id: str) -> ClaimOutcome:
        told: ClaimOutcome | None = self._told("claim")
        return super().claim(id) if told is None else told

    def renew(self, id: str, token: str) -> bool:
        told = self._told("renew")
        return super().renew(id, token) if told is None else told

    def complete(self, id: str, token: str) -> bool:
        self._told("complete")
        return super().complete(id, token)

    def release(self, id: str, token: str) -> bool:
        self._told("release")
        return super().release(id, token)


def test_a_copy_is_parked_while_the_first_runs_then_skipped() -> None:
    store = Told()
    guard = Guard(store, claim=True)

    def handler(delivery: Delivery) -> int:
        assert not guard.store.seen("order-1"), "a lease is never a mark"
        copy = guard.process(envelope(), never)
        assert copy.parked
        assert copy.id == "order-1"
        assert 59_000 < (copy.left_ms or 0) <= 60_000
        return 7

    result = guard.process(envelope(), handler)
    assert (result.value, result.settled) == (7, Settled.MARKED)
    assert guard.process(envelope(), never).skipped
    assert store.asked == ["claim", "claim", "complete", "claim"]


def test_a_failure_gives_the_lease_back() -> None:
    store = Told()
    guard = Guard(store, claim=True)
    with pytest.raises(ZeroDivisionError):
        guard.process(envelope(), lambda delivery: 1 / 0)
    assert store.asked == ["claim", "release"]
    assert guard.process(envelope(), lambda delivery: 1).marked


def test_a_plain_guard_takes_no_lease_for_a_mark() -> None:
    store = MemoryStore()
    assert isinstance(store.claim("order-1"), Lease)
    assert Guard(store).process(envelope(), lambda delivery: 1).ran


def test_of_many_copies_at_once_one_runs() -> None:
    guard = Guard(MemoryStore(), claim=True)
    go = threading.Barrier(8)
    release = threading.Event()
    ran: list[int] = []
    results: list[str] = []

    def handler(delivery: Delivery) -> None:
        ran.append(1)
        release.wait(10)

    def work() -> None:
        go.wait()
        results.append(guard.process(envelope(), handler).status)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(results) == 7)
    release.set()
    for thread in threads:
        thread.join()
    assert len(ran) == 1
    assert sorted(results) == ["parked"] * 7 + ["ran"]


def test_a_lease_is_renewed_while_the_handler_runs() -> None:
    store = Told(lease_ms=150)
    guard = Guard(store, claim=True)

    def handler(delivery: Delivery) -> bool:
        time.sleep(0.6)
        assert guard.process(envelope(), never).parked
        return delivery.lease_lost

    result = guard.process(envelope(), handler)
    assert result.value is False
    assert result.settled is Settled.MARKED
    assert store.asked.count("renew") >= 4
    renewals = len(store.asked)
    time.sleep(0.3)
    assert len(store.asked) == renewals, "nothing is renewed when the handler has ended"


def test_many_leases_are_renewed_by_one_thread() -> None:
    before = threading.active_count()
    guard = Guard(Told(lease_ms=150), claim=True)
    running = threading.Semaphore(0)
    release = threading.Event()
    settled: list[Settled] = []

    def handler(delivery: Delivery) -> None:
        running.release()
        release.wait(10)

    def work(n: int) -> None:
        settled.append(guard.process(envelope(f"id-{n}"), handler).settled)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for _ in threads:
        running.acquire()
    time.sleep(0.5)
    assert threading.active_count() == before + 21
    release.set()
    for thread in threads:
        thread.join()
    assert settled == [Settled.MARKED] * 20


def test_a_lost_lease_is_told_and_a_late_mark_is_set_all_the_same() -> None:
    store = Told(lease_ms=90)
    store.answers["renew"] = False
    guard = Guard(store, claim=True)
    told: list[str] = []

    def late(delivery: Delivery) -> str:
        delivery.on_lease_lost(lambda: told.append("first"))
        delivery.on_lease_lost(lambda: 1 / 0)
        eventually(lambda: delivery.lease_lost)
        delivery.on_lease_lost(lambda: told.append("afterwards"))
        time.sleep(0.12)
        other = guard.process(envelope(), lambda d: "another")
        assert (other.value, other.settled) == ("another", Settled.MARKED)
        return "late"

    result = guard.process(envelope(), late)
    assert (result.value, result.settled, result.marked) == ("late", Settled.MARKED_LATE, True)
    assert told == ["first", "afterwards"] or told == ["afterwards", "first"]


def test_a_late_finish_leaves_the_lease_of_another_alone() -> None:
    store = Told(lease_ms=80)
    store.answers["renew"] = False
    guard = Guard(store, claim=True)
    taken: list[Any] = []

    def slow(delivery: Delivery) -> None:
        time.sleep(0.12)
        taken.append(store.claim("order-1"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        guard.process(envelope(), slow)
    assert isinstance(taken[0], Lease)
    assert isinstance(store.claim("order-1"), Busy), "what was not ours was not given back"


def test_a_lease_counts_as_lost_when_the_store_cannot_be_asked_for_its_length() -> None:
    store = Told(lease_ms=200)
    store.fails["renew"] = StoreUnavailable("down")
    guard = Guard(store, claim=True)

    def handler(delivery: Delivery) -> float:
        began = time.monotonic()
        assert not delivery.lease_lost
        eventually(lambda: delivery.lease_lost)
        return time.monotonic() - began

    took = guard.process(envelope(), handler).value
    assert took is not None
    assert took >= 0.15, "it was still ours before"
    assert store.asked.count("renew") >= 3, "it was tried again"


def test_a_renewal_that_fails_once_is_made_up_for() -> None:
    store = Told(lease_ms=300)
    store.fails["renew"] = SystemExit("not even an Exception")
    guard = Guard(store, claim=True)

    def handler(delivery: Delivery) -> bool:
        eventually(lambda: "renew" in store.asked)
        store.fails.clear()
        time.sleep(0.5)
        return delivery.lease_lost

    result = guard.process(envelope(), handler)
    assert result.value is False
    assert result.settled is Settled.MARKED


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (StoreUnavailable("down"), StoreUnavailable),
        (StoreRejected("no"), StoreRejected),
        (OSError("gone"), StoreUnavailable),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_claim_that_fails_runs_nothing(error: BaseException, raised: type[BaseException]) -> None:
    store = Told()
    store.fails["claim"] = error
    guard = Guard(store, claim=True)
    with pytest.raises(raised):
        guard.process(envelope(), never)
    store.fails.clear()
    assert guard.process(envelope(), lambda delivery: 1).marked


@pytest.mark.parametrize(
    "answer", [True, "won", ("t", 1), Lease("", 5), Lease("t", -1), Busy(-1), Busy(2**63), Done]
)
def test_an_answer_to_a_claim_that_is_none_is_rejected(answer: Any) -> None:
    store = Told()
    store.answers["claim"] = answer
    with pytest.raises(StoreRejected, match="must answer a Lease, Busy or Done"):
        Guard(store, claim=True).process(envelope(), never)


def test_a_token_of_any_length_that_is_sane() -> None:
    store = Told()
    guard = Guard(store, claim=True)
    store.answers["claim"] = Lease("é" * 512, 5000)
    assert guard.process(envelope(), lambda delivery: 1).settled is Settled.MARKED_LATE
    store.answers["claim"] = Lease("t" * 1025, 5000)
    store.asked.clear()
    with pytest.raises(StoreRejected, match="at most 1024 bytes"):
        guard.process(envelope(), never)
    with pytest.raises(StoreRejected, match="at most 1024 bytes"):
        asyncio.run(AsyncGuard(store, claim=True).process(envelope(), never))
    assert store.asked == ["claim", "release"] * 2, "what cannot be made use of is given back"


def test_what_fails_at_settling() -> None:
    store = Told()
    guard = Guard(store, claim=True)
    store.fails = {"complete": OSError("gone"), "release": OSError("gone")}
    result = guard.process(envelope("a"), lambda delivery: 1)
    assert result.ran
    assert not result.marked
    assert isinstance(result.mark_error, StoreUnavailable)
    with pytest.raises(ZeroDivisionError):
        guard.process(envelope("b"), lambda delivery: 1 / 0)


def test_forget_leaves_a_lease_alone() -> None:
    guard = Guard(MemoryStore(), claim=True)

    def handler(delivery: Delivery) -> None:
        guard.forget("order-1")
        assert guard.process(envelope(), never).parked

    assert guard.process(envelope(), handler).marked


class TestAsyncio:
    def test_copies_are_parked_and_leases_renewed(self) -> None:
        store = Told(lease_ms=150)

        async def main() -> None:
            guard = AsyncGuard(store, claim=True)

            async def handler(delivery: AsyncDelivery) -> bool:
                await asyncio.sleep(0.6)
                assert (await guard.process(envelope(), never)).parked
                return delivery.lease_lost

            result = await guard.process(envelope(), handler)
            assert result.value is False
            assert result.settled is Settled.MARKED
            assert (await guard.process(envelope(), never)).skipped

        asyncio.run(main())
        assert store.asked.count("renew") >= 4

    def test_a_lost_lease_can_cancel_the_handler(self) -> None:
        store = Told(lease_ms=90)
        store.answers["renew"] = False

        async def main() -> None:
            guard = AsyncGuard(store, claim=True)

            async def handler(delivery: AsyncDelivery) -> None:
                task = asyncio.current_task()
                assert task is not None
                delivery.on_lease_lost(task.cancel)
                await asyncio.sleep(10)

            task = asyncio.create_task(guard.process(envelope(), handler))
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert store.asked[-1] == "release"

    def test_a_lease_counts_as_lost_when_the_store_cannot_be_asked(self) -> None:
        store = Told(lease_ms=90)
        store.fails["renew"] = OSError("gone")

        async def main() -> None:
            async def handler(delivery: AsyncDelivery) -> bool:
                assert not delivery.lease_lost
                await asyncio.sleep(0.3)
                return delivery.lease_lost

            result = await AsyncGuard(store, claim=True).process(envelope(), handler)
            assert result.value is True

        asyncio.run(main())

    def test_a_cancelled_handler_gives_its_lease_back(self) -> None:
        store = Told()

        async def main() -> None:
            guard = AsyncGuard(store, claim=True)
            task = asyncio.create_task(
                guard.process(envelope(), lambda delivery: asyncio.sleep(10))
            )
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await guard.process(envelope(), lambda delivery: 1)).marked

        asyncio.run(main())
        assert store.asked == ["claim", "release", "claim", "complete"]
