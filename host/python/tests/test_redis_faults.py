"""The Redis stores when the server is down, stuck, refusing, or its reply is lost."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Open, RedisServer, eventually
from redis.exceptions import ResponseError

from babelqueue_guard import (
    AsyncGuard,
    Busy,
    Done,
    Guard,
    KnownId,
    Lease,
    StoreRejected,
    StoreUnavailable,
    redis,
)


def never(delivery: object) -> None:
    pytest.fail("the handler was called")


def calls(store: Any) -> list[Callable[[], object]]:
    """Everything that a store can be asked."""
    return [
        lambda: store.seen("a"),
        lambda: store.remember("a"),
        lambda: store.forget("a"),
        lambda: store.claim("a"),
        lambda: store.renew("a", "t"),
        lambda: store.complete("a", "t"),
        lambda: store.release("a", "t"),
        lambda: store.set_once("a", "step"),
    ]


def writes(store: Any) -> list[Callable[[], object]]:
    return [calls(store)[n] for n in (1, 3, 5, 7)]


def test_a_server_that_is_killed_and_comes_back(own_redis: RedisServer, open_store: Open) -> None:
    store = open_store(own_redis.url)
    store.remember("before")
    own_redis.stop()
    for call in calls(store):
        with pytest.raises(StoreUnavailable):
            call()
    own_redis.start()
    for call in calls(store):
        call()


def test_a_server_that_is_restarted_between_two_calls(
    own_redis: RedisServer, open_store: Open
) -> None:
    store = open_store(own_redis.url)
    for call in calls(store):
        store.seen("a")
        own_redis.stop()
        own_redis.start()
        call()


def test_a_server_that_stops_answering(
    own_redis: RedisServer, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "RESPONSE_TIMEOUT_S", 0.1)
    store = open_store(own_redis.url)
    store.seen("a")
    own_redis.pause()
    for call in calls(store):
        with pytest.raises(StoreUnavailable):
            call()
    own_redis.resume()
    own_redis.client.flushall()
    assert not store.seen("a")
    assert isinstance(store.claim("a"), Lease)


def test_the_guard_runs_nothing_meanwhile_and_recovers(own_redis: RedisServer) -> None:
    store = redis.RedisStore.from_url(own_redis.url)
    for claim in (False, True):
        guard = Guard(store, claim=claim)
        own_redis.stop()
        with pytest.raises(StoreUnavailable, match="Redis: "):
            guard.process(KnownId(f"a-{claim}"), never)
        own_redis.start()
        assert guard.process(KnownId(f"a-{claim}"), lambda delivery: 1).marked
        result = guard.process(KnownId(f"b-{claim}"), lambda delivery: own_redis.stop())
        assert result.ran
        assert not result.marked
        assert isinstance(result.mark_error, StoreUnavailable)
        own_redis.start()
    store.close()


def test_replies_that_pass_by_themselves(own_redis: RedisServer, open_store: Open) -> None:
    raw = own_redis.client
    store = open_store(own_redis.url)
    # A replica refuses writes; one without its primary, reads too.
    raw.replicaof("127.0.0.1", 1)
    for call in writes(store):
        with pytest.raises(StoreUnavailable, match="read only replica"):
            call()
    raw.config_set("replica-serve-stale-data", "no")
    for call in calls(store):
        with pytest.raises(StoreUnavailable, match=r"Link with MASTER is down|read only"):
            call()
    raw.replicaof("NO", "ONE")
    raw.config_set("min-replicas-to-write", 1)
    for call in writes(store):
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            call()
    raw.config_set("min-replicas-to-write", 0)
    raw.config_set("maxmemory", 1)
    for call in writes(store):
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            call()
    raw.config_set("maxmemory", 0)
    for call in writes(store):
        call()


def test_a_server_that_is_loading(own_redis: RedisServer, open_store: Open, tmp_path: Path) -> None:
    own_redis.stop()
    own_redis.start("--dir", str(tmp_path))
    own_redis.client.mset({f"bq:idemp:{n}": 1 for n in range(10_000)})
    own_redis.client.save()
    own_redis.stop()
    slowly = ("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
    own_redis.start("--dir", str(tmp_path), *slowly, ready=False)
    store = open_store(own_redis.url)

    def loading() -> bool:
        with pytest.raises(StoreUnavailable) as error:
            store.seen("1")
        return "loading" in str(error.value)

    eventually(loading)
    for call in calls(store):
        with pytest.raises(StoreUnavailable, match="loading"):
            call()


def test_a_server_that_has_too_many_clients(own_redis: RedisServer, open_store: Open) -> None:
    own_redis.client.config_set("maxclients", 1)
    for call in calls(open_store(own_redis.url)):
        with pytest.raises(StoreUnavailable):
            call()


def test_a_server_that_is_busy_with_a_script(own_redis: RedisServer, open_store: Open) -> None:
    raw = own_redis.client
    raw.config_set("busy-reply-threshold", 1)
    store = open_store(own_redis.url)
    store.seen("a")

    def run() -> None:
        with pytest.raises(ResponseError, match="killed"):
            raw.eval("while 1 do end", 0)

    loop = threading.Thread(target=run)
    loop.start()
    time.sleep(0.2)
    try:
        for call in calls(store):
            with pytest.raises(StoreUnavailable, match="BUSY"):
                call()
    finally:
        with socket.create_connection(("127.0.0.1", own_redis.port)) as connection:
            connection.sendall(b"SCRIPT KILL\r\n")
            connection.recv(100)
        loop.join()
    assert not store.seen("a")


def test_a_connection_to_what_was_the_primary_is_dropped(
    own_redis: RedisServer, open_store: Open
) -> None:
    raw = own_redis.client
    store = open_store(own_redis.url)
    store.seen("a")
    raw.replicaof("127.0.0.1", 1)

    def ports() -> set[str]:
        return {client["addr"] for client in raw.client_list()}

    for call in writes(store):
        store.seen("a")
        before = ports()
        with pytest.raises(StoreUnavailable):
            call()
        assert before - ports(), "the connection is closed, so that the next one is another"


def test_what_an_operator_has_to_mend(own_redis: RedisServer, open_store: Open) -> None:
    raw = own_redis.client
    raw.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+get", "+ping")
    url = f"redis://reader:pw@127.0.0.1:{own_redis.port}"
    store = open_store(url)
    assert not store.seen("a")
    for call in writes(store):
        with pytest.raises(StoreRejected, match="permissions"):
            call()
    for call in calls(open_store(url.replace(":pw", ":secret-pw"))):
        with pytest.raises(StoreRejected) as refused:
            call()
        assert "secret-pw" not in str(refused.value)
    raw.config_set("requirepass", "x")
    with pytest.raises(StoreRejected, match="uthenticat"):
        open_store(own_redis.url).seen("a")


def test_a_node_of_a_cluster_that_has_no_slots(
    open_store: Open, own_redis: RedisServer, tmp_path: Path
) -> None:
    own_redis.stop()
    own_redis.start("--cluster-enabled", "yes", "--dir", str(tmp_path))
    store = open_store(own_redis.url)
    for call in calls(store):
        with pytest.raises(StoreUnavailable, match="Hash slot not served"):
            call()


class Proxy:
    """Stands between a store and its server, and loses replies when it is told to."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.lose = 0
        """How many of the next replies are lost, and their connections with them."""
        self.requests: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.server.port)) as server:
            while request := client.recv(65_536):
                server.sendall(request)
                # The greeting of a client is not what a test is about.
                greeting = b"HELLO" in request or b"CLIENT" in request
                if not greeting:
                    self.requests.append(request)
                reply = server.recv(65_536)
                if self.lose and not greeting:
                    self.lose -= 1
                    return
                client.sendall(reply)

    def close(self) -> None:
        self.listener.close()


@pytest.fixture
def proxy(redis_server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(redis_server)
    yield proxy
    proxy.close()


def test_a_claim_whose_reply_is_lost_is_still_won(proxy: Proxy, open_store: Open) -> None:
    store = open_store(proxy.url)
    store.seen("a")
    proxy.lose = 1
    lease = store.claim("a")
    assert isinstance(lease, Lease), "it finds its own token"
    assert store.renew("a", lease.token)


def test_a_claim_whose_outcome_stays_unknown_is_given_back(proxy: Proxy, open_store: Open) -> None:
    raw = proxy.server.client
    store = open_store(proxy.url)
    store.seen("a")
    proxy.lose = 2
    with pytest.raises(StoreUnavailable):
        store.claim("a")
    eventually(lambda: not raw.exists("bq:lease:a"))
    assert isinstance(store.claim("a"), Lease)


def test_a_claim_that_finds_a_mark_or_another_after_a_lost_reply(
    proxy: Proxy, open_store: Open
) -> None:
    raw = proxy.server.client
    store = open_store(proxy.url)
    raw.set("bq:idemp:done", 1)
    raw.set("bq:lease:busy", "another", px=5000)
    store.seen("a")
    proxy.lose = 1
    assert store.claim("done") == Done()
    assert not raw.exists("bq:lease:done")
    proxy.lose = 1
    assert isinstance(store.claim("busy"), Busy)
    assert raw.get("bq:lease:busy") == b"another"


def test_a_step_is_sent_once(proxy: Proxy, open_store: Open) -> None:
    store = open_store(proxy.url)
    store.seen("a")
    proxy.requests.clear()
    proxy.lose = 1
    with pytest.raises(StoreUnavailable):
        store.set_once("a", "step")
    assert len([request for request in proxy.requests if b"NX" in request]) == 1
    assert not store.set_once("a", "step"), "and the next delivery skips it"


def test_a_mark_whose_reply_is_lost_is_set_once_more(proxy: Proxy, open_store: Open) -> None:
    store = open_store(proxy.url)
    for call in (
        lambda: store.remember("a"),
        lambda: store.complete("a", "t"),
        lambda: store.seen("a"),
        lambda: store.forget("b"),
    ):
        store.seen("x")
        proxy.lose = 1
        call()
    assert store.seen("a")


def test_a_cancelled_claim_is_given_back(redis_server: RedisServer) -> None:
    class Stalling(Proxy):
        """Delays the replies to claims."""

        def _serve(self, client: socket.socket) -> None:
            with client, socket.create_connection(("127.0.0.1", self.server.port)) as server:
                while request := client.recv(65_536):
                    server.sendall(request)
                    reply = server.recv(65_536)
                    if b"NX" in request:
                        time.sleep(0.3)
                    client.sendall(reply)

    proxy = Stalling(redis_server)

    async def main() -> None:
        store = redis.AsyncRedisStore.from_url(proxy.url)
        guard = AsyncGuard(store, claim=True)
        task = asyncio.create_task(guard.process(KnownId("a"), never))
        await asyncio.to_thread(eventually, lambda: redis_server.client.exists("bq:lease:a"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not redis_server.client.exists("bq:lease:a")
        await store.aclose()

    asyncio.run(main())
    proxy.close()


def test_a_client_that_waits_for_ever_is_the_users_own_affair_but_not_ours() -> None:
    store = redis.RedisStore.from_url("redis://localhost")
    settings = store._client.connection_pool.connection_kwargs
    assert settings["socket_timeout"] == 5
    assert settings["socket_connect_timeout"] == 2
