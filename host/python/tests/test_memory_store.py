"""The memory store: what it forgets, when, and at what cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from babelqueue_guard import Busy, Done, Lease, MemoryStore, StoreRejected, memory


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    class Clock:
        now = 1000.0

    monkeypatch.setattr(memory, "monotonic", lambda: Clock.now)
    return Clock


def test_marks_expire_and_remembering_restarts_them(clock: Any) -> None:
    store = MemoryStore(retention_ms=1000)
    store.remember("a")
    clock.now += 0.999
    assert store.seen("a")
    store.remember("a")
    clock.now += 0.999
    assert store.seen("a")
    clock.now += 0.001
    assert not store.seen("a")
    store.remember("b")
    assert len(store._marks) == 1, "what has expired goes"


def test_marks_may_stay_for_ever(clock: Any) -> None:
    store = MemoryStore(retention_ms=None)
    store.remember("a")
    clock.now += 1e12
    assert store.seen("a")


def test_fourteen_days_and_sixty_seconds_unless_set(clock: Any) -> None:
    store = MemoryStore()
    store.remember("a")
    assert store.claim("b") == Lease(next(iter(store._leases.values()))[1], 60_000)
    clock.now += 14 * 24 * 3600 - 0.001
    assert store.seen("a")
    clock.now += 0.001
    assert not store.seen("a")


def test_the_oldest_mark_goes_first(clock: Any) -> None:
    store = MemoryStore(max_entries=3)
    for id in ("a", "b", "c", "a", "d"):
        clock.now += 1
        store.remember(id)
    assert [store.seen(id) for id in "abcd"] == [True, False, True, True]
    for n in range(10):
        store.set_once(f"id-{n}", "step")
    assert len(store._steps) == 3


def test_a_lease_lapses_and_is_taken_over(clock: Any) -> None:
    store = MemoryStore(lease_ms=1500)
    first = store.claim("a")
    assert isinstance(first, Lease)
    clock.now += 1.1
    assert store.claim("a") == Busy(400)
    assert store.renew("a", first.token)
    assert store.claim("a") == Busy(1500)
    clock.now += 1.5
    assert not store.renew("a", first.token), "a lapsed lease is not revived"
    second = store.claim("a")
    assert isinstance(second, Lease)
    assert second.token != first.token
    assert not store.release("a", first.token)
    assert isinstance(store.claim("a"), Busy)
    assert not store.complete("a", first.token), "late; the mark is set all the same"
    assert store.claim("a") == Done()
    assert not store.renew("a", first.token)
    assert store.release("a", second.token)


def test_a_mark_counts_before_a_lease_and_forgetting_leaves_the_lease() -> None:
    store = MemoryStore()
    lease = store.claim("a")
    assert isinstance(lease, Lease)
    store.remember("a")
    assert store.claim("a") == Done()
    store.forget("a")
    assert isinstance(store.claim("a"), Busy)
    assert store.complete("a", lease.token)
    assert store.seen("a")


def test_lapsed_leases_do_not_pile_up(clock: Any) -> None:
    store = MemoryStore(lease_ms=1000)
    for n in range(10_000):
        clock.now += 0.1
        store.claim(f"id-{n}")
    assert len(store._leases) <= 11


def test_steps_expire_as_marks_do(clock: Any) -> None:
    store = MemoryStore(retention_ms=1000)
    assert store.set_once("a", "step")
    assert not store.set_once("a", "step")
    assert store.set_once("a", "other")
    clock.now += 1
    assert store.set_once("a", "step")


def test_steps_need_a_retention() -> None:
    store = MemoryStore(retention_ms=None)
    store.remember("a")
    with pytest.raises(StoreRejected, match="MemoryStore: steps need a retention"):
        store.set_once("a", "step")
    assert not store._steps


def test_no_call_takes_time_that_grows_with_the_entries() -> None:
    def took(entries: int) -> float:
        store = MemoryStore(max_entries=entries)
        for n in range(entries):
            store.remember(f"id-{n}")
        best = float("inf")
        for _ in range(20):
            began = time.perf_counter()
            for n in range(200):
                # Each of these drops the oldest.
                store.remember(f"new-{n}")
                store.seen(f"id-{n}")
            best = min(best, time.perf_counter() - began)
        return best

    # A scan would take two hundred times as long, not a few times.
    assert took(100_000) < 20 * took(500)


@pytest.mark.parametrize("setting", ["retention_ms", "lease_ms", "max_entries"])
@pytest.mark.parametrize("value", [0, -1, 0.5, float("nan"), float("inf"), 10**30, True, "60"])
def test_a_setting_that_cannot_be_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be a whole number of"):
        MemoryStore(**{setting: value})
