"""Both Redis stores on a cluster, where mark and lease live on different nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import redis
from conftest import Blocking, RedisServer, eventually, started
from redis.cluster import LoadBalancingStrategy

from babelqueue_guard import Busy, Done, Guard, KnownId, Lease, StoreRejected
from babelqueue_guard.redis import AsyncRedisStore, RedisStore

SLOTS = 16_384
IDS = [f"order-{n}" for n in range(40)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    nodes: list[RedisServer] = []
    try:
        for _ in range(3):
            nodes.append(started())
            nodes[-1].stop()
            folder: Path = tmp_path_factory.mktemp("node")
            nodes[-1].start("--cluster-enabled", "yes", "--dir", str(folder))
        join(nodes)
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def join(nodes: list[RedisServer]) -> None:
    """Makes one cluster of them, each with a third of the slots."""
    third = -(-SLOTS // len(nodes))
    for n, node in enumerate(nodes):
        last = min((n + 1) * third, SLOTS) - 1
        node.client.execute_command("CLUSTER ADDSLOTSRANGE", n * third, last)
        node.client.execute_command("CLUSTER MEET", "127.0.0.1", nodes[0].port)

    def whole() -> bool:
        infos = [node.client.execute_command("CLUSTER INFO") for node in nodes]
        return all(
            info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3" for info in infos
        )

    eventually(whole, within=30)


@pytest.fixture(params=["redis", "redis.asyncio"])
def store(request: pytest.FixtureRequest, nodes: list[RedisServer]) -> Iterator[Any]:
    for node in nodes:
        node.client.flushall()
    port = nodes[0].port
    if request.param == "redis":
        with redis.RedisCluster(host="127.0.0.1", port=port, socket_timeout=5) as client:
            yield RedisStore(client, lease_ms=5000)
        return
    loop = asyncio.new_event_loop()

    async def client() -> redis.asyncio.RedisCluster:
        return redis.asyncio.RedisCluster(host="127.0.0.1", port=port, socket_timeout=5)

    blocking = Blocking(AsyncRedisStore(loop.run_until_complete(client())), loop)
    yield blocking
    blocking.close()


def keys(nodes: list[RedisServer]) -> list[list[bytes]]:
    return [node.client.keys() for node in nodes]


def test_marks_claims_and_steps(store: Any, nodes: list[RedisServer]) -> None:
    for id in IDS:
        lease = store.claim(id)
        assert isinstance(lease, Lease)
        assert isinstance(store.claim(id), Busy)
        assert not store.seen(id)
        assert store.renew(id, lease.token)
        assert store.complete(id, lease.token)
        assert store.seen(id)
        assert store.claim(id) == Done()
        assert not store.release(id, lease.token)
        assert store.set_once(id, "step")
        assert not store.set_once(id, "step")
    found = keys(nodes)
    assert all(found), "each node has some"
    assert sorted(chain.from_iterable(found)) == sorted(
        f"bq:{kind}:{id}".encode() for id in IDS for kind in ("idemp", "once:step")
    )
    for id in IDS:
        store.forget(id)
        assert not store.seen(id)


def test_a_mark_that_cannot_be_read_gives_the_lease_back(
    store: Any, nodes: list[RedisServer]
) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=nodes[0].port) as raw:
        raw.hset("bq:idemp:a", "theirs", "1")
        with pytest.raises(StoreRejected, match="WRONGTYPE"):
            store.claim("a")
        assert not raw.exists("bq:lease:a")
        raw.hset("bq:once:step:a", "theirs", "1")
        with pytest.raises(StoreRejected, match="WRONGTYPE"):
            store.set_once("a", "step")


def test_slots_that_have_moved_are_followed(store: Any, nodes: list[RedisServer]) -> None:
    store.remember("a")
    raw = redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)
    slot = raw.keyslot("bq:idemp:a")
    owner = raw.get_node_from_key("bq:idemp:a")
    raw.close()
    (source,) = (node for node in nodes if owner is not None and node.port == owner.port)
    target = next(node for node in nodes if node is not source)
    source_id = source.client.execute_command("CLUSTER MYID").decode()
    target_id = target.client.execute_command("CLUSTER MYID").decode()
    target.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", source_id)
    source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", target_id)
    source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "bq:idemp:a", 0, 5000)
    assert store.seen("a"), "asked for on the way"
    for node in (target, source, *nodes):
        node.client.execute_command("CLUSTER SETSLOT", slot, "NODE", target_id)
    assert store.seen("a")
    assert store.claim("a") == Done()


def test_the_guard(nodes: list[RedisServer]) -> None:
    with redis.RedisCluster(host="127.0.0.1", port=nodes[0].port) as client:
        guard = Guard(RedisStore(client), claim=True)
        for id in IDS:
            assert guard.process(KnownId(f"guard-{id}"), lambda delivery: 1).marked
            assert guard.process(KnownId(f"guard-{id}"), lambda delivery: 1).skipped


def test_a_client_that_asks_replicas_is_refused(nodes: list[RedisServer]) -> None:
    with (
        redis.RedisCluster(
            host="127.0.0.1",
            port=nodes[0].port,
            load_balancing_strategy=LoadBalancingStrategy.ROUND_ROBIN,
        ) as client,
        pytest.raises(ValueError, match="replicas lag behind"),
    ):
        RedisStore(client)
