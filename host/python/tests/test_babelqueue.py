"""A drop-in for the babelqueue package: its apps, its envelopes, its stores, its headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import babelqueue
import pytest
from babelqueue import BabelQueue, EnvelopeCodec
from babelqueue.idempotency import InMemoryStore, wrap
from conftest import RedisServer

from babelqueue_guard import (
    Guard,
    MemoryStore,
    StoreUnavailable,
    current_delivery,
)
from babelqueue_guard.redis import RedisStore

URN = "urn:babel:orders:created"


def published(app: BabelQueue, copies: int = 1) -> str:
    """The id of a message that is delivered several times over."""
    envelope = EnvelopeCodec.make(URN, {"order_id": 1042}, queue=app.queue)
    for _ in range(copies):
        app.transport.publish(app.queue, EnvelopeCodec.encode(envelope))
    return str(envelope["meta"]["id"])


@pytest.fixture(params=["memory", "redis"])
def app(request: pytest.FixtureRequest) -> Iterator[BabelQueue]:
    if request.param == "memory":
        yield BabelQueue("memory://", queue="orders")
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    app = BabelQueue(server.url, queue="orders")
    yield app
    close = getattr(app.transport, "close", None)
    if close is not None:
        close()


def consume(app: BabelQueue) -> None:
    app.consume(max_messages=100, timeout=0.05, handle_signals=False)


def test_a_wrapped_handler_of_data_and_meta(app: BabelQueue) -> None:
    guard = Guard(MemoryStore())
    handled: list[tuple[Any, str]] = []

    @app.handler(URN)
    @guard.wrap
    def on_created(data: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        handled.append((data["order_id"], meta["id"]))

    first, second = published(app, copies=3), published(app)
    consume(app)
    assert handled == [(1042, first), (1042, second)]


def test_a_wrapped_handler_that_takes_the_envelope_too(app: BabelQueue) -> None:
    guard = Guard(MemoryStore(), claim=True)
    handled: list[Any] = []

    def on_created(data: Any, meta: Any, envelope: Mapping[str, Any]) -> None:
        delivery = current_delivery()
        assert delivery is not None
        handled.append((envelope["job"], delivery.id))

    app.register(URN, guard.wrap(on_created))
    id = published(app, copies=2)
    consume(app)
    assert handled == [(URN, id)]


def test_a_failure_is_retried_by_the_app_and_runs_again(app: BabelQueue) -> None:
    guard = Guard(MemoryStore())
    tries: list[int] = []

    @app.handler(URN)
    @guard.wrap
    def on_created(data: Any, meta: Any) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ZeroDivisionError

    published(app)
    consume(app)
    assert len(tries) == 3


def test_a_store_that_is_down_acknowledges_nothing() -> None:
    class Down(MemoryStore):
        def seen(self, id: str) -> bool:
            raise StoreUnavailable("down")

    app = BabelQueue("memory://", queue="orders", max_attempts=3, dead_letter=True)
    app.register(URN, Guard(Down()).wrap(lambda data, meta: pytest.fail("the handler was called")))
    published(app)
    consume(app)
    assert app.transport.size("orders.dlq") == 1  # type: ignore[attr-defined]


def test_its_own_store_serves_the_guard_and_shares_marks_with_its_own_helper() -> None:
    app = BabelQueue("memory://", queue="orders")
    store = InMemoryStore()
    guard = Guard(store)
    handled: list[str] = []
    envelope = EnvelopeCodec.make(URN, {}, queue="orders")
    body = EnvelopeCodec.encode(envelope)

    app.register(URN, wrap(store, lambda data, meta: handled.append("theirs")))
    app.transport.publish("orders", body)
    consume(app)
    assert guard.process(body, lambda delivery: pytest.fail("the handler was called")).skipped

    other = EnvelopeCodec.encode(EnvelopeCodec.make(URN, {}, queue="orders"))
    assert guard.process(other, lambda delivery: 1).ran
    app.transport.publish("orders", other)
    consume(app)
    assert handled == ["theirs"]


def test_a_redis_store_serves_its_helper_and_ours(redis_server: RedisServer) -> None:
    store = RedisStore.from_url(redis_server.url)
    handled: list[str] = []
    theirs = wrap(store, lambda data, meta: handled.append(meta["id"]))
    theirs({}, {"id": "a"})
    assert redis_server.client.get("bq:idemp:a") == b"1"
    ours = Guard(store, claim=True).wrap(lambda data, meta: handled.append(meta["id"]))
    ours({}, {"id": "a"})
    ours({}, {"id": "b"})
    theirs({}, {"id": "b"})
    assert handled == ["a", "b"]
    store.close()


def test_a_replay_is_told_by_the_headers_that_the_app_keeps() -> None:
    app = BabelQueue("memory://", queue="orders")
    guard = Guard(MemoryStore())
    told: list[tuple[bool, bool]] = []

    @app.handler(URN)
    @guard.wrap
    def on_created(data: Any, meta: Any) -> None:
        delivery = current_delivery()
        assert delivery is not None
        told.append((delivery.replay, babelqueue.is_replay()))

    body = EnvelopeCodec.encode(EnvelopeCodec.make(URN, {}, queue="orders"))
    for _ in range(2):
        app.transport.publish("orders", body)
        consume(app)
        headers = {babelqueue.HEADER_REPLAY_BYPASS: "1"}
        app.transport.publish_with_headers("orders", body, headers)  # type: ignore[attr-defined]
        consume(app)
        guard.forget(guard.identify(body).id or "")
        app.transport.publish_with_headers("orders", body, headers)  # type: ignore[attr-defined]
        consume(app)
        guard.forget(guard.identify(body).id or "")
    assert told == [(False, False), (True, True)] * 2


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({}, "absent"),
        ({"id": None}, "unusable"),
        ({"id": 7}, "unusable"),
        ({"id": ["a"]}, "unusable"),
        ({"id": ""}, "unusable"),
        ({"id": "\ud800"}, "unusable"),
    ],
)
def test_a_message_without_a_usable_id_runs_each_time(meta: Any, reason: str) -> None:
    told: list[Any] = []

    def handler(data: Any, meta: Any) -> None:
        delivery = current_delivery()
        assert delivery is not None
        told.append(delivery.reason)

    wrapped = Guard(MemoryStore()).wrap(handler)
    wrapped({}, meta)
    wrapped({}, meta)
    assert told == [reason, reason]
