"""The guard for threads: one delivery is decided, run and settled, top to bottom."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any, Literal, ParamSpec, TypeVar, overload

from ._decider import OPEN, Decider, settled
from .delivery import BaseDelivery, Delivery, _current
from .errors import Error, StoreRejected
from .renewal import Held, Renewals
from .settings import whole
from .store import QUESTIONS, Store, as_bool, as_claim, check_methods, method_of, unavailable
from .types import Body, Decision, Identity, Lease, Result, Settled
from .wrapping import Parked, delivery_of, headers_of

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__package__)

#: 16 MiB.
MAX_BODY = 16 * 1024 * 1024
LARGEST_MAX_BODY = 1024 * 1024 * 1024

#: How long a caller that was interrupted waits for a mark that is being set.
_SETTLING_S = 10

#: A named tuple's own constructor takes twice as long.
_new = tuple.__new__

MARK_MISSING = "message %r was handled, but its mark is missing: %s"
NEEDS_ASYNC = "{}.{} is asynchronous: such a store needs an AsyncGuard"


class Guard:
    """Makes the effect of a message happen once, though its queue delivers at least once.

    ``store`` is any object with ``seen``, ``remember`` and ``forget``. With ``claim`` it
    also has ``claim``, ``renew``, ``complete`` and ``release``, and while one delivery of
    a message runs its copies are parked. The caller's code is the same in both modes.

    ``max_body`` is in bytes (16 MiB unless set, 1 GiB at most); a larger body is refused
    with :class:`~babelqueue_guard.GuardError`.

    Thread-safe; one guard serves a whole process. Raises ``TypeError`` for a store that
    lacks a method, or whose methods are ``async``: those need an ``AsyncGuard``.
    """

    def __init__(self, store: Store, *, claim: bool = False, max_body: int = MAX_BODY) -> None:
        check_methods(store, claim)
        for name in QUESTIONS:
            if inspect.iscoroutinefunction(getattr(store, name, None)):
                raise TypeError(NEEDS_ASYNC.format(type(store).__name__, name))
        self.store = store
        self._seen = store.seen
        self._claim = claim
        self._decider = Decider(claim, whole("max_body", max_body, LARGEST_MAX_BODY, "bytes"))
        self._small = self._decider.small
        self._decide_small = self._decider.decide_small
        self._renewals = Renewals(self._renew)

    def process(
        self,
        body: Body,
        handler: Callable[[Delivery], T],
        *,
        headers: Mapping[str, Any] | None = None,
    ) -> Result[T]:
        """Runs the handler, unless the message's effect has happened or is happening.

        ``body`` is the envelope, as bytes or text, or a :class:`~babelqueue_guard.KnownId`.
        ``headers`` are the transport's, beside the body.

        Acknowledge the delivery when this returns, unless the result says ``parked``:
        then have it delivered again later, without counting an attempt.

        What the handler raises passes unchanged; nothing is marked then, a lease is given
        back, and a redelivery runs again. Once the handler has succeeded the mark is set,
        also if the caller is interrupted: whoever interrupts waits for it.

        Raises :class:`~babelqueue_guard.StoreError` or
        :class:`~babelqueue_guard.GuardError` if it could not be decided: the handler was
        not called, and the delivery must not be acknowledged.
        """
        began = time.monotonic() if self._claim else 0.0
        decision = self.decide(body)
        if decision.action != "run":
            return not_run(decision)
        delivery = Delivery(self, body, decision, headers)
        held: Held | None = None
        # The call and the note that it came back are one step that no signal comes
        # between: the interpreter looks for signals after a call, and by then a
        # defaultdict has stored what its factory returned.
        returned: defaultdict[str, T] = defaultdict(functools.partial(handler, delivery))
        try:
            if decision.lease is not None:
                held = self._renewals.add(delivery, decision.lease, began)
            value = returned["value"]
            if isinstance(value, CoroutineType):
                # It has not begun, so there is no effect to mark.
                value.close()
                returned.clear()
                raise TypeError(f"{handler!r} is async: it needs an AsyncGuard")
            return self._succeeded(decision, held, value)
        except BaseException:
            if returned:
                self._settle_elsewhere(decision, held)
            else:
                self._failed(decision, held)
            raise

    @overload
    def wrap(self, handler: Callable[P, T], /) -> Callable[P, T | None]: ...

    @overload
    def wrap(
        self,
        *,
        delivery: Callable[..., Body] = ...,
        headers: Callable[..., Mapping[str, Any]] = ...,
    ) -> Callable[[Callable[P, T]], Callable[P, T | None]]: ...

    def wrap(
        self,
        handler: Callable[..., Any] | None = None,
        *,
        delivery: Callable[..., Body] = delivery_of,
        headers: Callable[..., Mapping[str, Any]] = headers_of,
    ) -> Any:
        """Makes a handler skip what it has already handled; also as a decorator.

        The handler keeps its parameters. Unless ``delivery`` says how to find it, the
        delivery is a first argument of bytes or text, or else the ``id`` in the mapping
        that is the second argument, as the handlers of the ``babelqueue`` package have it.
        ``delivery`` and ``headers`` are called with the handler's arguments.

        The wrapped handler returns ``None`` for what it skips, and raises
        :class:`~babelqueue_guard.Parked` where another delivery is at work.
        :func:`~babelqueue_guard.current_delivery` is the delivery inside it. A mark that
        could not be set after a success is logged, since the delivery is to be
        acknowledged all the same.
        """
        if handler is None:
            return functools.partial(self.wrap, delivery=delivery, headers=headers)
        if inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler!r} is async: wrap it with an AsyncGuard")
        call = handler

        @functools.wraps(handler)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            def run(current: Delivery) -> Any:
                token = _current.set(current)
                try:
                    return call(*args, **kwargs)
                finally:
                    _current.reset(token)

            result = self.process(delivery(*args, **kwargs), run, headers=headers(*args, **kwargs))
            if result.parked:
                raise Parked(result)
            return result.value

        return wrapped

    def forget(self, id: str) -> None:
        """Removes an id's mark, so that a deliberate replay runs. A lease is not touched.

        Raises :class:`~babelqueue_guard.StoreError`; an id that is not usable, and so
        can have no mark, is rejected.
        """
        reply = self._decider.forget(id)
        if reply.question:
            self._ask(reply.question, reply.id)

    def identify(self, body: Body) -> Identity:
        """The id that a body is deduplicated by, or why it has none. Asks no store.

        Raises :class:`~babelqueue_guard.GuardError` for a body over the limit.
        """
        return self._decider.identify(body)

    # ---- the two halves of process, for handlers that run elsewhere -----------------

    def decide(self, body: Body) -> Decision:
        """What to do with a delivery, by its body or its known id.

        A run is to be settled; its lease, if it has one, is not renewed by itself.
        Raises as :meth:`process` does.
        """
        if type(body) is bytes and len(body) <= self._small:
            out, id = self._decide_small(body)
        else:
            out, id = self._decider.suppose(body)
        if out < 3:
            return OPEN[out]
        if self._claim:
            return self._claimed(id, self._ask("claim", id))
        try:
            seen = self._seen(id)
        except Error:
            raise
        except Exception as error:
            raise unavailable(self.store, "seen", error) from error
        if seen is True or (
            seen is not False and as_bool(self.store, "seen", self._at_once("seen", seen))
        ):
            return self._decider.seen(id)
        return _new(Decision, ("run", id, None, None, None))

    def settle(self, decision: Decision, outcome: Literal["succeeded", "failed"]) -> Settled:
        """Records how the handler of a run has ended. Settling twice is harmless.

        Raises :class:`~babelqueue_guard.StoreError` if it could not be recorded.
        """
        succeeded = outcome == "succeeded"
        reply = self._decider.settle(decision, succeeded)
        if reply.question == "remember":
            self._ask("remember", reply.id)
        elif reply.question:
            answer = self._ask(reply.question, reply.id, reply.second)
            if not as_bool(self.store, reply.question, answer):
                reply = self._decider.settle(decision, succeeded, held=False)
        return settled(reply)

    # ---- steps of the above ---------------------------------------------------------

    def _claimed(self, id: str, answer: object) -> Decision:
        try:
            return self._decider.claimed(id, as_claim(self.store, answer))
        except BaseException:
            # What was taken, and cannot be made use of, is not kept from the others.
            if isinstance(answer, Lease):
                with contextlib.suppress(Error):
                    self._ask("release", id, answer.token)
            raise

    def _succeeded(self, decision: Decision, held: Held | None, value: T) -> Result[T]:
        if held is not None:
            self._renewals.remove(held)
        result = Result("ran", decision.id, decision.reason, value)
        try:
            result.settled = self.settle(decision, "succeeded")
        except Error as error:
            result.mark_error = error
            log.error(MARK_MISSING, decision.id, error)
        return result

    def _failed(self, decision: Decision, held: Held | None) -> None:
        if held is not None:
            self._renewals.remove(held)
        try:
            self.settle(decision, "failed")
        except Error as error:
            # What the handler raised says more; the lease lapses by itself.
            log.warning("the lease of %r was not given back: %s", decision.id, error)

    def _settle_elsewhere(self, decision: Decision, held: Held | None) -> None:
        """Settles a success once more, where no signal interrupts it."""
        settling = threading.Thread(target=self._succeeded, args=(decision, held, None))
        settling.start()
        settling.join(_SETTLING_S)

    def _renew(self, delivery: BaseDelivery) -> bool:
        reply = self._decider.renew(delivery._decision)
        if reply.question:
            answer = self._ask("renew", reply.id, reply.second)
            if not as_bool(self.store, "renew", answer):
                reply = self._decider.renew(delivery._decision, held=False)
        return reply.value == 0

    def _once(self, decision: Decision, step: str) -> bool:
        reply = self._decider.once(decision, step)
        if reply.question:
            answer = self._ask("set_once", reply.id, reply.second)
            if not as_bool(self.store, "set_once", answer):
                reply = self._decider.once(decision, step, first=False)
        return reply.value == 1

    def _ask(self, question: str, *arguments: str) -> Any:
        method = method_of(self.store, question)
        try:
            answer = method(*arguments)
        except Error:
            raise
        except Exception as error:
            raise unavailable(self.store, question, error) from error
        return self._at_once(question, answer)

    def _at_once(self, question: str, answer: Any) -> Any:
        if answer is not None and inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise StoreRejected(NEEDS_ASYNC.format(type(self.store).__name__, question))
        return answer


def not_run(decision: Decision) -> Result[Any]:
    """The result of a delivery that is skipped or parked."""
    if decision.action == "skip":
        return Result("skipped", decision.id)
    return Result("parked", decision.id, left_ms=decision.left_ms)
