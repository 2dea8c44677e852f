"""Both Redis stores on a real server: what they write and read (section 8)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import redis
from conftest import Open, RedisServer, eventually
from redis.cache import CacheConfig

from babelqueue_guard import AsyncGuard, Busy, Done, Guard, KnownId, Lease, StoreRejected
from babelqueue_guard.redis import AsyncRedisStore, RedisStore


def test_marks_as_a_raw_client_sees_them(redis_server: RedisServer, open_store: Open) -> None:
    raw = redis_server.client
    store = open_store(redis_server.url)
    assert not store.seen("a")
    store.remember("a")
    assert store.seen("a")
    assert raw.get("bq:idemp:a") == b"1"
    day = 24 * 3600 * 1000
    assert 14 * day - 5000 < raw.pttl("bq:idemp:a") <= 14 * day
    raw.pexpire("bq:idemp:a", 1000)
    store.remember("a")
    assert raw.pttl("bq:idemp:a") > 13 * day, "remembering again restarts the retention"
    raw.set("bq:idemp:b", "", px=100_000)
    assert store.seen("b"), "whatever the mark's value is"
    store.forget("a")
    store.forget("a")
    assert not store.seen("a")
    assert sorted(raw.keys()) == [b"bq:idemp:b"]


def test_ids_go_into_keys_as_they_are(redis_server: RedisServer, open_store: Open) -> None:
    store = open_store(redis_server.url, prefix="shop:", name="mail_2")
    ids = [" a ", "é", "e\u0301", "📦", "*?[a]\\", "\r\n", "x" * 2048, "\ufffd", "{a}b"]
    for id in ids:
        store.remember(id)
        assert store.seen(id)
    assert set(redis_server.client.keys()) == {b"shop:idemp@mail_2:" + id.encode() for id in ids}


def test_two_consumers_of_one_store_need_two_names(
    redis_server: RedisServer, open_store: Open
) -> None:
    for name in (None, "mail", "mail_2"):
        store = open_store(redis_server.url, name=name)
        assert not store.seen("a")
        assert isinstance(store.claim("a"), Lease)
        assert store.set_once("a", "step")
        store.remember("a")
    assert len(redis_server.client.keys()) == 9


def test_retention(redis_server: RedisServer, open_store: Open) -> None:
    raw = redis_server.client
    open_store(redis_server.url, retention_ms=None).remember("ever")
    assert raw.pttl("bq:idemp:ever") == -1
    longest = 10_000 * 365 * 24 * 3600 * 1000
    open_store(redis_server.url, retention_ms=longest).remember("long")
    assert raw.pttl("bq:idemp:long") > longest - 5000
    short = open_store(redis_server.url, retention_ms=80)
    short.remember("short")
    eventually(lambda: not short.seen("short"))
    # A mark for ever is replaced by one that expires, not kept as it was.
    short.remember("ever")
    assert 0 < raw.pttl("bq:idemp:ever") <= 80


def test_claims(redis_server: RedisServer, open_store: Open) -> None:
    raw = redis_server.client
    store = open_store(redis_server.url)
    lease = store.claim("a")
    assert lease == Lease(raw.get("bq:lease:a").decode(), 60_000)
    assert len(lease.token) == 32
    assert not store.seen("a"), "a lease is never a mark"
    busy = store.claim("a")
    assert isinstance(busy, Busy)
    assert 55_000 < busy.left_ms <= 60_000
    raw.pexpire("bq:lease:a", 1000)
    assert store.renew("a", lease.token)
    assert raw.pttl("bq:lease:a") > 55_000
    assert not store.renew("a", "0" * 32)
    assert not store.release("a", "0" * 32)
    assert raw.exists("bq:lease:a")
    assert store.complete("a", lease.token)
    assert raw.keys() == [b"bq:idemp:a"]
    assert raw.pttl("bq:idemp:a") > 13 * 24 * 3600 * 1000, "the mark's retention, not the lease's"
    assert store.claim("a") == Done()
    assert raw.keys() == [b"bq:idemp:a"], "what was taken on the way is given back"
    store.forget("a")
    again = store.claim("a")
    assert isinstance(again, Lease)
    assert again.token != lease.token
    store.forget("a")
    assert raw.exists("bq:lease:a"), "forgetting leaves the lease alone"
    assert store.release("a", again.token)
    assert raw.keys() == []


def test_a_lease_lapses(redis_server: RedisServer, open_store: Open) -> None:
    store = open_store(redis_server.url, lease_ms=150)
    first = store.claim("a")
    time.sleep(0.05)
    assert isinstance(store.claim("a"), Busy)
    time.sleep(0.15)
    assert not store.renew("a", first.token), "a lapsed lease is not revived"
    second = store.claim("a")
    assert isinstance(second, Lease)
    assert not store.complete("a", first.token), "late"
    assert redis_server.client.get("bq:lease:a") == second.token.encode()
    assert store.seen("a")
    assert store.claim("a") == Done(), "a mark counts before a lease, whoever holds it"
    assert redis_server.client.get("bq:lease:a") == second.token.encode()


def test_a_foreign_lease_without_an_end_is_busy(
    redis_server: RedisServer, open_store: Open
) -> None:
    redis_server.client.set("bq:lease:a", "somebody")
    assert open_store(redis_server.url).claim("a") == Busy(1)


def test_steps(redis_server: RedisServer, open_store: Open) -> None:
    store = open_store(redis_server.url)
    assert store.set_once("a", "mail")
    assert not store.set_once("a", "mail")
    assert store.set_once("a", "count")
    assert redis_server.client.get("bq:once:mail:a") == b"1"
    assert redis_server.client.pttl("bq:once:mail:a") > 13 * 24 * 3600 * 1000


def test_steps_need_a_retention(redis_server: RedisServer, open_store: Open) -> None:
    store = open_store(redis_server.url, retention_ms=None)
    before = redis_server.client.info("stats")["total_commands_processed"]
    with pytest.raises(StoreRejected, match="Redis: steps need a retention"):
        store.set_once("a", "step")
    # The count's own INFO is the next one.
    assert redis_server.client.info("stats")["total_commands_processed"] == before + 1


def test_something_of_another_type_is_neither_taken_for_a_mark_nor_overwritten(
    redis_server: RedisServer, open_store: Open
) -> None:
    raw = redis_server.client
    store = open_store(redis_server.url)
    for key in ("bq:idemp:a", "bq:lease:l", "bq:once:step:a"):
        raw.hset(key, "theirs", "1")
    for call, key in (
        (lambda: store.seen("a"), "bq:idemp:a"),
        (lambda: store.remember("a"), "bq:idemp:a"),
        (lambda: store.forget("a"), "bq:idemp:a"),
        (lambda: store.claim("a"), "bq:idemp:a"),
        (lambda: store.claim("l"), "bq:lease:l"),
        (lambda: store.renew("l", "t"), "bq:lease:l"),
        (lambda: store.release("l", "t"), "bq:lease:l"),
        (lambda: store.complete("a", "t"), "bq:idemp:a"),
        (lambda: store.set_once("a", "step"), "bq:once:step:a"),
    ):
        with pytest.raises(StoreRejected, match=f"{key}: .*WRONGTYPE"):
            call()
    assert sorted(raw.keys()) == [b"bq:idemp:a", b"bq:lease:l", b"bq:once:step:a"]
    assert raw.type("bq:idemp:a") == b"hash"
    assert not raw.exists("bq:lease:a"), "a claim that failed gives its lease back"


def test_a_mark_counts_where_only_its_lease_is_spoilt(
    redis_server: RedisServer, open_store: Open
) -> None:
    redis_server.client.hset("bq:lease:a", "theirs", "1")
    store = open_store(redis_server.url)
    store.complete("a", "t")
    assert store.seen("a")


def test_scripts_survive_a_flush_and_a_server_that_has_never_seen_them(
    redis_server: RedisServer, open_store: Open
) -> None:
    store = open_store(redis_server.url)
    lease = store.claim("a")
    redis_server.client.script_flush()
    assert store.renew("a", lease.token)
    redis_server.client.script_flush()
    assert store.complete("a", lease.token)


def test_a_client_of_the_users_own(redis_server: RedisServer) -> None:
    with redis.Redis(
        port=redis_server.port, decode_responses=True, single_connection_client=True
    ) as client:
        store = RedisStore(client)
        guard = Guard(store, claim=True)
        redis_server.client.set("bq:idemp:latin", b"\xff\xfe")
        assert guard.process(KnownId("latin"), lambda delivery: 1).skipped
        result = guard.process(KnownId("a"), lambda delivery: delivery.once("step"))
        assert (result.value, result.marked) == (True, True)
        lease = store.claim("b")
        assert isinstance(lease, Lease)
        assert store.renew("b", lease.token)
        assert isinstance(store.claim("b"), Busy)
        assert store.release("b", lease.token)

    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_server.port, decode_responses=True) as client:
            guard = AsyncGuard(AsyncRedisStore(client), claim=True)
            assert (await guard.process(KnownId("a"), lambda delivery: 1)).skipped
            assert (await guard.process(KnownId("c"), lambda delivery: 1)).marked

    asyncio.run(main())


def test_clients_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes a redis\.Redis or .*, not redis\.asyncio"):
        RedisStore(redis.asyncio.Redis())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes a redis\.asyncio\.Redis or"):
        AsyncRedisStore(redis.Redis())  # type: ignore[arg-type]


def test_a_client_that_caches_replies_is_refused(redis_server: RedisServer) -> None:
    with (
        redis.Redis(port=redis_server.port, protocol=3, cache_config=CacheConfig()) as client,
        pytest.raises(ValueError, match="must not cache replies"),
    ):
        RedisStore(client)


def test_a_server_that_evicts_is_a_concern(redis_server: RedisServer, open_store: Open) -> None:
    store = open_store(redis_server.url)
    assert store.concerns() == []
    redis_server.client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        (concern,) = store.concerns()
        assert "maxmemory-policy is allkeys-lru" in concern
    finally:
        redis_server.client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize("kind", [RedisStore, AsyncRedisStore])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("retention_ms", 0),
        ("retention_ms", -1),
        ("retention_ms", float("nan")),
        ("retention_ms", 2**63),
        ("retention_ms", 1.5),
        ("lease_ms", 0),
        ("lease_ms", None),
        ("lease_ms", True),
        ("name", ""),
        ("name", "a" * 25),
        ("name", "A"),
        ("name", "a:b"),
        ("name", "a\n"),
        ("name", 7),
        ("prefix", None),
        ("prefix", b"bq:"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(kind: Any, setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{setting} must be"):
        kind.from_url("redis://localhost", **{setting: value})


def test_many_claims_at_once_and_one_wins(redis_server: RedisServer) -> None:
    async def main() -> None:
        stores = [AsyncRedisStore.from_url(redis_server.url) for _ in range(8)]
        for n in range(25):
            outcomes = await asyncio.gather(*(store.claim(f"id-{n}") for store in stores))
            kinds = sorted(type(outcome).__name__ for outcome in outcomes)
            assert kinds == ["Busy"] * 7 + ["Lease"]
        for store in stores:
            await store.aclose()

    asyncio.run(main())
