"""What a handler is given: the delivery, with what the guard knows of it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

from .types import Body, Decision, FailOpen

if TYPE_CHECKING:
    from .aio import AsyncGuard
    from .guard import Guard

#: The transport header that marks a deliberate replay (contract, section 6).
REPLAY_HEADER = "bq-replay-bypass"


class BaseDelivery:
    """What both kinds of delivery have in common."""

    __slots__ = ("_decision", "_lost", "_on_lost", "body", "headers")

    def __init__(self, body: Body, decision: Decision, headers: Mapping[str, Any] | None) -> None:
        self.body = body
        """The body as it was handed over; or the id, where only that was."""
        self.headers = headers or {}
        """The transport headers that came beside the body."""
        self._decision = decision
        self._lost = False
        self._on_lost: list[Callable[[], object]] = []

    @property
    def id(self) -> str | None:
        """The message's id, where it has a usable one."""
        return self._decision.id

    @property
    def reason(self) -> FailOpen | None:
        """Why there is no usable id, and this delivery is not deduplicated."""
        return self._decision.reason

    @property
    def replay(self) -> bool:
        """Whether this is a deliberate replay, by the header ``bq-replay-bypass``.

        External effects that have already happened can then be skipped.
        """
        return REPLAY_HEADER in self.headers

    @property
    def lease_lost(self) -> bool:
        """Whether another delivery may have started on the message meanwhile."""
        return self._lost

    def on_lease_lost(self, callback: Callable[[], object]) -> None:
        """Has a function called when the lease is lost; at once if it is lost already.

        It is called in the thread that renews, or in the event loop.
        """
        self._on_lost.append(callback)
        if self._lost:
            self._tell()

    def _lose(self) -> None:
        self._lost = True
        self._tell()

    def _tell(self) -> None:
        while self._on_lost:
            self._on_lost.pop()()


class Delivery(BaseDelivery):
    """A delivery that a :class:`~babelqueue_guard.Guard` lets run."""

    __slots__ = ("_guard",)

    def __init__(
        self, guard: Guard, body: Body, decision: Decision, headers: Mapping[str, Any] | None
    ) -> None:
        super().__init__(body, decision, headers)
        self._guard = guard

    def once(self, step: str) -> bool:
        """Whether the named step is to run now: true once for each id and step.

        For an effect that may be lost rather than happen twice (contract, section 4).
        Without a usable id it is always true. A name is ``[a-z0-9_]{1,40}``.

        Raises :class:`~babelqueue_guard.StoreError`: the step is then not to run. A store
        that keeps its marks for ever rejects every step.
        """
        return self._guard._once(self._decision, step)


class AsyncDelivery(BaseDelivery):
    """A delivery that an :class:`~babelqueue_guard.AsyncGuard` lets run."""

    __slots__ = ("_guard",)

    def __init__(
        self, guard: AsyncGuard, body: Body, decision: Decision, headers: Mapping[str, Any] | None
    ) -> None:
        super().__init__(body, decision, headers)
        self._guard = guard

    def once(self, step: str) -> Step:
        """As :meth:`Delivery.once`, to be awaited."""
        return Step(self, step)


class Step:
    """The answer of :meth:`AsyncDelivery.once`, once it is awaited."""

    __slots__ = ("_delivery", "_step")

    def __init__(self, delivery: AsyncDelivery, step: str) -> None:
        self._delivery = delivery
        self._step = step

    def __await__(self) -> Generator[Any, None, bool]:
        return self._delivery._guard._once(self._delivery._decision, self._step).__await__()

    def __bool__(self) -> NoReturn:
        # Any object is true, and a forgotten `await` would run the step each time.
        raise TypeError("await the answer: if await delivery.once(...)")


_current: ContextVar[BaseDelivery | None] = ContextVar("babelqueue_guard_delivery", default=None)


def current_delivery() -> BaseDelivery | None:
    """The delivery that is being handled, for a handler that a guard has wrapped."""
    return _current.get()
