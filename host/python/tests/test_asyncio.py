"""The guard for asyncio: stores and handlers that are awaited, or not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import envelope

from babelqueue_guard import (
    AsyncDelivery,
    AsyncGuard,
    Decision,
    GuardError,
    KnownId,
    MemoryStore,
    Parked,
    Result,
    Settled,
    StoreRejected,
    StoreUnavailable,
    current_delivery,
)


class Asynchronous:
    """A store of async methods that takes a turn of the loop for each, or fails as told."""

    def __init__(self, **answers: Any) -> None:
        self.marks: set[str] = set()
        self.answers = answers

    async def _answer(self, question: str, otherwise: Any) -> Any:
        await asyncio.sleep(0)
        answer = self.answers.get(question, otherwise)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def seen(self, id: str) -> Any:
        return await self._answer("seen", id in self.marks)

    async def remember(self, id: str) -> None:
        await self._answer("remember", None)
        self.marks.add(id)

    async def forget(self, id: str) -> None:
        await self._answer("forget", None)
        self.marks.discard(id)


async def handled(delivery: AsyncDelivery) -> str | None:
    await asyncio.sleep(0)
    return delivery.id


async def never(delivery: AsyncDelivery) -> None:
    pytest.fail("the handler was called")


@pytest.mark.parametrize("store", [Asynchronous, MemoryStore])
def test_one_delivery_after_another(store: Any) -> None:
    async def main() -> None:
        guard = AsyncGuard(store())
        result = await guard.process(envelope("a"), handled)
        assert result == Result("ran", "a", value="a", settled=Settled.MARKED)
        assert await guard.process(envelope("a"), never) == Result("skipped", "a")
        await guard.forget("a")
        assert (await guard.process(envelope("a"), lambda delivery: 5)).value == 5
        assert (await guard.process(KnownId("a"), never)).skipped
        opened = await guard.process("[]", handled)
        assert (opened.status, opened.id, opened.reason) == ("ran", None, "malformed")
        with pytest.raises(StoreRejected):
            await guard.forget("")
        assert guard.identify(envelope("x")).id == "x"

    asyncio.run(main())


def test_ten_thousand_in_flight_need_few_instances() -> None:
    async def main() -> None:
        guard = AsyncGuard(Asynchronous())
        idle = guard._decider._runtime._idle
        before = len(idle)
        results = await asyncio.gather(
            *(guard.process(envelope(f"id-{n}"), handled) for n in range(10_000))
        )
        assert [result.value for result in results] == [f"id-{n}" for n in range(10_000)]
        assert all(result.marked for result in results)
        assert len(idle) <= max(before, 1)

    asyncio.run(main())


def test_failures() -> None:
    async def main() -> None:
        error = ZeroDivisionError("0")

        async def failing(delivery: AsyncDelivery) -> None:
            raise error

        store = Asynchronous()
        guard = AsyncGuard(store)
        with pytest.raises(ZeroDivisionError) as caught:
            await guard.process(envelope(), failing)
        assert caught.value is error
        assert store.marks == set()
        store.answers["seen"] = OSError("gone")
        with pytest.raises(StoreUnavailable, match=r"Asynchronous\.seen failed: OSError: gone"):
            await guard.process(envelope(), never)
        store.answers["seen"] = StoreRejected("no")
        with pytest.raises(StoreRejected, match=r"^no$"):
            await guard.process(envelope(), never)
        store.answers["seen"] = None
        with pytest.raises(StoreRejected, match="must answer True or False"):
            await guard.process(envelope(), never)
        store.answers = {"remember": OSError("gone")}
        result = await guard.process(envelope(), handled)
        assert (result.value, result.marked) == ("order-1", False)
        assert isinstance(result.mark_error, StoreUnavailable)
        with pytest.raises(GuardError):
            await AsyncGuard(store, max_body=5).process(b"123456", never)
        with pytest.raises(TypeError, match="Asynchronous lacks claim"):
            AsyncGuard(store, claim=True)

    asyncio.run(main())


def test_a_step_is_awaited() -> None:
    async def main() -> None:
        guard = AsyncGuard(MemoryStore())

        async def steps(delivery: AsyncDelivery) -> list[bool]:
            with pytest.raises(TypeError, match="await the answer"):
                bool(delivery.once("count"))
            return [await delivery.once("count"), await delivery.once("count")]

        assert (await guard.process(envelope(), steps)).value == [True, False]
        assert (await guard.process("{}", steps)).value == [True, True]

    asyncio.run(main())


def test_wrap() -> None:
    async def main() -> None:
        guard = AsyncGuard(MemoryStore(), claim=True)

        @guard.wrap
        async def handle(body: bytes) -> tuple[str | None, bytes]:
            delivery = current_delivery()
            with pytest.raises(Parked):
                await handle(body)
            assert current_delivery() is delivery
            assert delivery is not None
            return delivery.id, body

        assert await handle(envelope("a")) == ("a", envelope("a"))
        assert await handle(envelope("a")) is None
        assert current_delivery() is None

    asyncio.run(main())


def test_the_halves_of_process() -> None:
    async def main() -> None:
        guard = AsyncGuard(Asynchronous())
        decision = await guard.decide(envelope("a"))
        assert decision == Decision("run", "a")
        assert await guard.settle(decision, "succeeded") is Settled.MARKED
        assert await guard.decide(envelope("a")) == Decision("skip", "a")

    asyncio.run(main())


def test_event_loops_in_several_threads() -> None:
    guard = AsyncGuard(MemoryStore())

    async def main(thread: int) -> list[str | None]:
        return [(await guard.process(envelope(f"{thread}-{n}"), handled)).value for n in range(100)]

    async def all_of_them() -> None:
        results = await asyncio.gather(
            *(asyncio.to_thread(lambda n=n: asyncio.run(main(n))) for n in range(4))
        )
        assert results == [[f"{thread}-{n}" for n in range(100)] for thread in range(4)]

    asyncio.run(all_of_them())
