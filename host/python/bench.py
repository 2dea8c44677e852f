"""Compares the guard with what Python itself takes, each within one run.

    .venv/bin/python bench.py

Decisions over the memory store beside `json.loads` and a look into a set; the same beside
a thread that computes, as a share of the rate alone; and a full cycle on Redis beside the
two raw commands and beside the babelqueue package's helper over the same store. Minima of
interleaved slices, so that what else the machine does matters little.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
from babelqueue.idempotency import wrap

from babelqueue_guard import AsyncGuard, Guard, MemoryStore
from babelqueue_guard.redis import RedisStore

Timed = Callable[[], object]

ID = "5f0c1d2e-3a4b-4c5d-8e6f-708192a3b4c5"


def envelope(size: int) -> bytes:
    """An order with as many lines as fit."""
    head = '{"job":"urn:babel:orders:created","trace_id":"7d0c4d7e-35a1-4f4e-9d34-0f0d2a4f7a10"'
    head += ',"data":{"order_id":1042'
    tail = f'}},"meta":{{"id":"{ID}","queue":"orders","lang":"python"'
    tail += ',"schema_version":1,"created_at":1700000000000},"attempts":0}'
    lines = ""
    n = 0
    while len(head) + len(lines) + len(tail) < size - 60:
        lines += f',"line_{n}":{{"sku":"A-{n * 7}","qty":{n % 9},"price":{n}.25}}'
        n += 1
    return (head + lines + tail).encode()


def minima(calls: int, slices: int, *timed: Timed) -> list[float]:
    """Seconds for one call of each, the best of interleaved slices."""
    best = [float("inf")] * len(timed)
    for _ in range(slices):
        for n, call in enumerate(timed):
            began = time.perf_counter()
            for _ in range(calls):
                call()
            best[n] = min(best[n], (time.perf_counter() - began) / calls)
    return best


def row(what: str, seconds: float, compared: float, goal: float | None = None) -> None:
    ratio = seconds / compared
    verdict = "" if goal is None else f"   goal {goal:.2f}{'' if ratio <= goal else '  MISSED'}"
    print(f"{what:<52}{seconds * 1e6:>9.2f} µs{ratio:>8.2f}{verdict}")


def decisions(size: int, goal_run: float, goal_skip: float | None) -> None:
    body = envelope(size)
    marks = {"another"}
    fresh = Guard(MemoryStore())
    marked = Guard(MemoryStore())
    marked.process(body, lambda delivery: None)
    asynchronous = AsyncGuard(MemoryStore())

    def extract() -> bool:
        return json.loads(body)["meta"]["id"] in marks

    def decide() -> object:
        return fresh.decide(body)

    def decide_seen() -> object:
        return marked.decide(body)

    def decide_async() -> object:
        # What an event loop does with a coroutine that has nothing to wait for.
        try:
            return asynchronous.decide(body).send(None)
        except StopIteration as done:
            return done.value

    # Slices of a few milliseconds: among a hundred, some are disturbed by nothing.
    calls = max(20, 400_000 // size)
    parsed, run, skip, ready = minima(calls, 100, extract, decide, decide_seen, decide_async)
    row(f"json.loads and a look into a set, {len(body)} B", parsed, parsed)
    row("  decide, not seen", run, parsed, goal_run)
    row("  decide, already seen", skip, parsed, goal_skip)
    row("  decide, asyncio, a store whose answer is ready", ready, parsed)


def beside_a_thread_that_computes() -> None:
    guard = Guard(MemoryStore())
    body = envelope(250)

    def rate(seconds: float) -> float:
        end = time.perf_counter() + seconds
        calls = 0
        while time.perf_counter() < end:
            for _ in range(100):
                guard.decide(body)
            calls += 100
        return calls / seconds

    alone = max(rate(0.3) for _ in range(5))
    stop = threading.Event()

    def compute() -> None:
        n = 0
        while not stop.is_set():
            for _ in range(1000):
                n += n * n % 7

    thread = threading.Thread(target=compute)
    thread.start()
    beside = max(rate(1) for _ in range(3))
    stop.set()
    thread.join()
    share = beside / alone
    print(
        f"decisions a second alone {alone:,.0f}, beside a computing thread {beside:,.0f}: "
        f"{share:.0%}   goal 40%{'' if share >= 0.4 else '  MISSED'}"
    )


@contextmanager
def server() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    process = subprocess.Popen(
        ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
    )
    try:
        client = redis.Redis(port=port)
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.01)
        yield port
    finally:
        process.kill()
        process.wait()


def cycles_on_redis() -> None:
    with server() as port:
        client = redis.Redis(port=port)
        store = RedisStore.from_url(f"redis://127.0.0.1:{port}/0")
        plain, claiming = Guard(store), Guard(store, claim=True)
        ids = iter(range(10**9))

        def body() -> bytes:
            return b'{"data":{},"meta":{"id":"%d"}}' % next(ids)

        def raw() -> None:
            key = f"bq:idemp:{json.loads(body())['meta']['id']}"
            if client.get(key) is None:
                client.set(key, "1", px=1_209_600_000)

        theirs = wrap(store, lambda data, meta: None)
        commands, helper, cycle, claimed = minima(
            500,
            8,
            raw,
            lambda: theirs({}, json.loads(body())["meta"]),
            lambda: plain.process(body(), lambda delivery: None),
            lambda: claiming.process(body(), lambda delivery: None),
        )
        row("json.loads, GET and SET on Redis", commands, commands)
        row("  babelqueue.idempotency.wrap over our store", helper, commands)
        row("  the guard: seen, handler, remember", cycle, commands)
        row("  the guard that claims: claim, handler, complete", claimed, commands)


def main() -> None:
    print(f"CPython {sys.version.split()[0]}")
    decisions(250, 0.6, 0.9)
    decisions(10_000, 0.15, None)
    beside_a_thread_that_computes()
    if shutil.which("redis-server"):
        cycles_on_redis()
    else:
        print("redis-server is not installed: no cycles on Redis")


if __name__ == "__main__":
    main()
