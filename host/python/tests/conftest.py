"""What the tests share: the repository's cases, and Redis servers of their own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from babelqueue_guard.redis import AsyncRedisStore, RedisStore

REPOSITORY = Path(__file__).resolve().parents[3]
CASES = REPOSITORY / "tests" / "cases"


def envelope(id: str = "order-1") -> bytes:
    return b'{"job":"urn:babel:orders:created","data":{},"meta":{"id":"%s"}}' % id.encode()


def eventually(holds: Callable[[], object], within: float = 10) -> None:
    """Waits until something holds; fails if it does not come to that."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def free_port() -> int:
    """A port that nobody listens on, and to which a cluster's node can add ten thousand."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 55_000:
            return port


_SETTINGS = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")


class RedisServer:
    """A redis-server of this test run, on a port of its own, with nothing on disk."""

    def __init__(self) -> None:
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *settings: str, ready: bool = True) -> None:
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), *_SETTINGS, *settings],
            stdout=subprocess.DEVNULL,
        )
        self.client = redis.Redis(port=self.port)
        if ready:
            eventually(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "redis-server has ended"
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()


def started() -> RedisServer:
    if shutil.which("redis-server") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is missing, and CI must not leave its tests out")
        pytest.skip("redis-server is not installed")
    return RedisServer()


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    server = started()
    yield server
    server.stop()


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """A server that nothing is done to, empty."""
    shared_redis.client.flushall()
    return shared_redis


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server of the test's own, to be stopped, paused and set otherwise."""
    server = started()
    yield server
    server.resume()
    server.stop()


Open = Callable[..., Any]


class Blocking:
    """An asynchronous store as a plain one, so that one test is for both."""

    def __init__(
        self, store: AsyncRedisStore, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.store = store
        self.loop = loop or asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        method: Callable[..., Awaitable[Any]] = getattr(self.store, name)

        async def call(*arguments: str) -> Any:
            # The loop stood still since the last call: what has ended meanwhile, such as
            # a connection, is noticed as it would have been.
            await asyncio.sleep(0.001)
            await asyncio.sleep(0)
            return await method(*arguments)

        return lambda *arguments: self.loop.run_until_complete(call(*arguments))

    def close(self) -> None:
        self.loop.run_until_complete(self.store.aclose())
        self.loop.close()


@pytest.fixture(params=["redis", "redis.asyncio"])
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    opened: list[Any] = []

    def open_one(url: str, **settings: Any) -> Any:
        store: Any
        if request.param == "redis":
            store = RedisStore.from_url(url, **settings)
        else:
            store = Blocking(AsyncRedisStore.from_url(url, **settings))
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()
