"""The guard for asyncio: one delivery is decided, run and settled, top to bottom."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeVar, overload

from ._decider import OPEN, Decider, run, settled
from .delivery import AsyncDelivery, BaseDelivery, _current
from .errors import Error
from .guard import LARGEST_MAX_BODY, MARK_MISSING, MAX_BODY, not_run
from .renewal import AsyncRenewal
from .settings import whole
from .store import AsyncStore, as_bool, as_claim, check_methods, method_of, unavailable
from .types import Body, Decision, Identity, Lease, Result, Settled
from .wrapping import Parked, delivery_of, headers_of

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__package__)

#: How long a caller that was cancelled waits for a mark that is being set.
_SETTLING_S = 10


class AsyncGuard:
    """The :class:`~babelqueue_guard.Guard` for asyncio, with the same methods to be awaited.

    A store's methods may be ``async`` or plain. A plain one is called in the event loop's
    thread, so it should answer at once, as a :class:`~babelqueue_guard.MemoryStore` does.

    May be used from several event loops, each in a thread of its own.
    """

    def __init__(self, store: AsyncStore, *, claim: bool = False, max_body: int = MAX_BODY) -> None:
        check_methods(store, claim)
        self.store = store
        self._seen = store.seen
        self._claim = claim
        self._decider = Decider(claim, whole("max_body", max_body, LARGEST_MAX_BODY, "bytes"))

    @overload
    async def process(
        self,
        body: Body,
        handler: Callable[[AsyncDelivery], Awaitable[T]],
        *,
        headers: Mapping[str, Any] | None = None,
    ) -> Result[T]: ...

    @overload
    async def process(
        self,
        body: Body,
        handler: Callable[[AsyncDelivery], T],
        *,
        headers: Mapping[str, Any] | None = None,
    ) -> Result[T]: ...

    async def process(
        self,
        body: Body,
        handler: Callable[[AsyncDelivery], Any],
        *,
        headers: Mapping[str, Any] | None = None,
    ) -> Result[Any]:
        """As :meth:`Guard.process`; the handler may be ``async`` or plain.

        If the task is cancelled while the handler runs, that is the handler's failure.
        Once it has succeeded the mark is set all the same: the cancellation goes on when
        that is done, or after ten seconds, while the setting of the mark goes on.
        """
        began = time.monotonic()
        decision = await self.decide(body)
        if decision.action != "run":
            return not_run(decision)
        delivery = AsyncDelivery(self, body, decision, headers)
        renewal = decision.lease and AsyncRenewal(self._renew, delivery, decision.lease, began)
        try:
            returned = handler(delivery)
            value = await returned if inspect.isawaitable(returned) else returned
        except BaseException:
            if renewal is not None:
                renewal.stop()
            await self._failed(decision)
            raise
        if renewal is not None:
            renewal.stop()
        return await self._succeeded(decision, value)

    @overload
    def wrap(self, handler: Callable[P, Awaitable[T]], /) -> Callable[P, Awaitable[T | None]]: ...

    @overload
    def wrap(
        self,
        *,
        delivery: Callable[..., Body] = ...,
        headers: Callable[..., Mapping[str, Any]] = ...,
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T | None]]]: ...

    def wrap(
        self,
        handler: Callable[..., Awaitable[Any]] | None = None,
        *,
        delivery: Callable[..., Body] = delivery_of,
        headers: Callable[..., Mapping[str, Any]] = headers_of,
    ) -> Any:
        """As :meth:`Guard.wrap`, for an ``async`` handler."""
        if handler is None:
            return functools.partial(self.wrap, delivery=delivery, headers=headers)
        call = handler

        @functools.wraps(handler)
        async def wrapped(*args: Any, **kwargs: Any) -> Any:
            async def run(current: AsyncDelivery) -> Any:
                token = _current.set(current)
                try:
                    return await call(*args, **kwargs)
                finally:
                    _current.reset(token)

            result = await self.process(
                delivery(*args, **kwargs), run, headers=headers(*args, **kwargs)
            )
            if result.parked:
                raise Parked(result)
            return result.value

        return wrapped

    async def forget(self, id: str) -> None:
        """As :meth:`Guard.forget`."""
        reply = self._decider.forget(id)
        if reply.question:
            await self._ask(reply.question, reply.id)

    def identify(self, body: Body) -> Identity:
        """As :meth:`Guard.identify`; nothing is awaited."""
        return self._decider.identify(body)

    # ---- the two halves of process, for handlers that run elsewhere -----------------

    async def decide(self, body: Body) -> Decision:
        """As :meth:`Guard.decide`."""
        if type(body) is bytes and len(body) <= self._decider.small:
            out, id = self._decider.decide_small(body)
        else:
            out, id = self._decider.suppose(body)
        if out < 3:
            return OPEN[out]
        if self._claim:
            return await self._claimed(id, await self._ask("claim", id))
        try:
            seen = self._seen(id)
            if seen is not False and seen is not True and inspect.isawaitable(seen):
                seen = await seen
        except Error:
            raise
        except Exception as error:
            raise unavailable(self.store, "seen", error) from error
        if seen is True or (seen is not False and as_bool(self.store, "seen", seen)):
            return self._decider.seen(id)
        return run(id)

    async def settle(self, decision: Decision, outcome: Literal["succeeded", "failed"]) -> Settled:
        """As :meth:`Guard.settle`; runs to its end, also if it is cancelled."""
        succeeded = outcome == "succeeded"
        reply = self._decider.settle(decision, succeeded)
        cancelled = None
        if reply.question:
            strings = (reply.id,) if reply.question == "remember" else (reply.id, reply.second)
            answer, cancelled = await self._ask_to_its_end(reply.question, *strings)
            if reply.question != "remember" and not as_bool(self.store, reply.question, answer):
                reply = self._decider.settle(decision, succeeded, held=False)
        if cancelled is not None:
            raise cancelled
        return settled(reply)

    # ---- steps of the above ---------------------------------------------------------

    async def _claimed(self, id: str, answer: object) -> Decision:
        try:
            return self._decider.claimed(id, as_claim(self.store, answer))
        except Error:
            # What was taken, and cannot be made use of, is not kept from the others.
            if isinstance(answer, Lease):
                with contextlib.suppress(Error):
                    await self._ask("release", id, answer.token)
            raise

    async def _succeeded(self, decision: Decision, value: T) -> Result[T]:
        result = Result("ran", decision.id, decision.reason, value)
        try:
            result.settled = await self.settle(decision, "succeeded")
        except Error as error:
            result.mark_error = error
            log.error(MARK_MISSING, decision.id, error)
        except asyncio.CancelledError as cancelled:
            if cancelled.__cause__ is not None:
                log.error(MARK_MISSING, decision.id, cancelled.__cause__)
            raise
        return result

    async def _failed(self, decision: Decision) -> None:
        try:
            await self.settle(decision, "failed")
        except Error as error:
            # What the handler raised says more; the lease lapses by itself.
            log.warning("the lease of %r was not given back: %s", decision.id, error)

    async def _renew(self, delivery: BaseDelivery) -> bool:
        reply = self._decider.renew(delivery._decision)
        if reply.question:
            answer = await self._ask("renew", reply.id, reply.second)
            if not as_bool(self.store, "renew", answer):
                reply = self._decider.renew(delivery._decision, held=False)
        return reply.value == 0

    async def _once(self, decision: Decision, step: str) -> bool:
        reply = self._decider.once(decision, step)
        if reply.question:
            answer = await self._ask("set_once", reply.id, reply.second)
            if not as_bool(self.store, "set_once", answer):
                reply = self._decider.once(decision, step, first=False)
        return reply.value == 1

    async def _ask(self, question: str, *arguments: str) -> Any:
        method = method_of(self.store, question)
        try:
            answer = method(*arguments)
            return await answer if inspect.isawaitable(answer) else answer
        except Error:
            raise
        except Exception as error:
            raise unavailable(self.store, question, error) from error

    async def _ask_to_its_end(
        self, question: str, *arguments: str
    ) -> tuple[Any, asyncio.CancelledError | None]:
        """Asks, through cancellations: the answer, and the cancellation that came meanwhile."""
        method = method_of(self.store, question)
        try:
            answer = method(*arguments)
            if not inspect.isawaitable(answer):
                return answer, None
            return await _to_its_end(answer, functools.partial(method, *arguments))
        except Error:
            raise
        except Exception as error:
            raise unavailable(self.store, question, error) from error


#: Those that outlast their callers: the event loop itself keeps no task alive.
_outlasting: set[asyncio.Future[Any]] = set()


async def _to_its_end(
    awaitable: Awaitable[T], again: Callable[[], Awaitable[T]]
) -> tuple[T, asyncio.CancelledError | None]:
    """Awaits through cancellations.

    An event loop that shuts down cancels every task, this one's too: what was cut short
    so is started again, which is harmless for a store's writes.

    Raises the cancellation itself where the operation failed, its cause, and when too
    much time has passed since; what was begun goes on then.
    """
    loop = asyncio.get_running_loop()
    future = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    deadline = float("inf")
    while True:
        try:
            # Unlike a plain await, this leaves the future alone when it is cancelled.
            await asyncio.wait({future}, timeout=min(deadline - loop.time(), _SETTLING_S))
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
            deadline = min(deadline, loop.time() + _SETTLING_S)
        if future.cancelled() and cancelled is not None and loop.time() < deadline:
            future = asyncio.ensure_future(again())
        elif future.done():
            failed = None if future.cancelled() else future.exception()
            if cancelled is not None and failed is not None:
                raise cancelled from failed
            return future.result(), cancelled
        elif cancelled is not None and loop.time() >= deadline:
            _outlasting.add(future)
            future.add_done_callback(_outlasting.discard)
            raise cancelled
