"""The table of cases that every host runs: bodies, ids and sequences."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import CASES, RedisServer

from babelqueue_guard import AsyncGuard, FailOpen, Guard, Identity, KnownId, MemoryStore
from babelqueue_guard.redis import AsyncRedisStore, RedisStore

BODIES = json.loads((CASES / "bodies" / "manifest.json").read_text("utf-8"))
IDS = json.loads((CASES / "ids.json").read_text("utf-8"))
ILL_FORMED = json.loads((CASES / "ids-ill-formed.json").read_text("utf-8"))
SEQUENCES = json.loads((CASES / "conformance" / "manifest.json").read_text("utf-8"))["idempotency"]

PLAIN = Guard(MemoryStore())
CLAIMING = Guard(MemoryStore(), claim=True)


def identity(case: dict[str, Any]) -> Identity:
    return Identity(case["id"], case["reason"] and FailOpen(case["reason"]))


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case["file"])
def test_body(case: dict[str, Any]) -> None:
    body = (CASES / "bodies" / case["file"]).read_bytes()
    assert PLAIN.identify(body) == identity(case), case["why"]
    assert CLAIMING.identify(body) == identity(case), case["why"]
    assert PLAIN.identify(bytearray(body)) == identity(case)
    assert PLAIN.identify(memoryview(body)) == identity(case)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return
    assert PLAIN.identify(text) == identity(case), "text gives the verdict of its bytes"


@pytest.mark.parametrize("case", IDS, ids=lambda case: case["why"])
def test_id(case: dict[str, Any]) -> None:
    expected = Identity(case["id"], None) if case["usable"] else Identity(None, FailOpen.UNUSABLE)
    assert PLAIN.identify(KnownId(case["id"])) == expected
    assert CLAIMING.identify(KnownId(case["id"])) == expected


@pytest.mark.parametrize("case", ILL_FORMED, ids=lambda case: case["why"])
def test_id_that_is_no_unicode(case: dict[str, Any]) -> None:
    text = "".join(chr(int(unit, 16)) for unit in case["utf16"])
    assert PLAIN.identify(KnownId(text)) == Identity(None, FailOpen.UNUSABLE)
    body = '{"meta":{"id":"%s"}}' % text
    assert PLAIN.identify(body) == Identity(None, FailOpen.UNUSABLE), "the same id in a text"
    body = '{"meta":{"id":"A"},"data":"%s"}' % text
    assert PLAIN.identify(body) == Identity("A", None), "text elsewhere never matters"


def test_dedup_key() -> None:
    key = SEQUENCES["dedup_key"]
    body = (CASES / "conformance" / key["envelope_file"]).read_bytes()
    assert PLAIN.identify(body).id == key["expected_key"]


class Failed(Exception):
    """What a delivery raises that is to fail."""


class Runner:
    """Runs one sequence, and says which of its deliveries ran."""

    def __init__(self, guard: Guard | AsyncGuard) -> None:
        self.guard = guard
        self.effects = 0

    def deliver(self, delivery: dict[str, Any]) -> str:
        before = self.effects

        def handler(_: object) -> None:
            self.effects += 1
            if delivery.get("outcome") == "throw":
                raise Failed

        body = json.dumps({"job": "x", "data": {}, "meta": {"id": delivery["meta_id"]}})
        try:
            if isinstance(self.guard, Guard):
                if delivery.get("forget_before"):
                    self.guard.forget(delivery["meta_id"])
                skipped = self.guard.process(body, handler).skipped
            else:
                skipped = asyncio.run(self.deliver_async(self.guard, delivery, body, handler))
            assert skipped is (self.effects == before)
        except Failed:
            assert self.effects == before + 1
        return "skip" if self.effects == before else "run"

    @staticmethod
    async def deliver_async(
        guard: AsyncGuard, delivery: dict[str, Any], body: str, handler: Callable[[object], None]
    ) -> bool:
        async def awaited(delivery: object) -> None:
            await asyncio.sleep(0)
            handler(delivery)

        try:
            if delivery.get("forget_before"):
                await guard.forget(delivery["meta_id"])
            return (await guard.process(body, awaited)).skipped
        finally:
            if isinstance(guard.store, AsyncRedisStore):
                await guard.store.aclose()


@pytest.fixture(params=["threads", "asyncio"])
def asynchronous(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "asyncio")


@pytest.fixture(params=["memory", "redis"])
def runner(request: pytest.FixtureRequest, asynchronous: bool, claim: bool) -> Iterator[Runner]:
    if request.param == "memory":
        kind = AsyncGuard if asynchronous else Guard
        yield Runner(kind(MemoryStore(), claim=claim))
        return
    server: RedisServer = request.getfixturevalue("redis_server")
    if asynchronous:
        yield Runner(AsyncGuard(AsyncRedisStore.from_url(server.url), claim=claim))
        return
    store = RedisStore.from_url(server.url)
    yield Runner(Guard(store, claim=claim))
    store.close()


@pytest.mark.parametrize("claim", [False, True], ids=["plain", "claiming"])
@pytest.mark.parametrize("case", SEQUENCES["sequences"]["cases"], ids=lambda case: case["name"])
def test_sequence(case: dict[str, Any], runner: Runner) -> None:
    decided = [runner.deliver(delivery) for delivery in case["deliveries"]]
    assert decided == [delivery["expect_effect"] for delivery in case["deliveries"]]
    assert runner.effects == case["expected_effects"]
