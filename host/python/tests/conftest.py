"""What the tests share: the repository's cases, and Redis servers of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

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


_SETTINGS = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")


class RedisServer:
    """A redis-server of this test run, on a port of its own, with nothing on disk."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self, *settings: str) -> None:
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), *_SETTINGS, *settings],
            stdout=subprocess.DEVNULL,
        )
        self.client = redis.Redis(port=self.port)
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
