"""Keeps the leases of running handlers alive (contract, section 3)."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable

from .delivery import BaseDelivery
from .errors import Error
from .types import Lease

log = logging.getLogger(__package__)

#: How long the thread stays when no lease is held.
_IDLE_S = 30


class Held:
    """A lease while its handler runs: when it is to be renewed, and when it has lapsed.

    Times are counted from before the command that set them was sent, so that a lease
    never counts as held when the store no longer holds it.
    """

    __slots__ = ("delivery", "due", "length", "until")

    def __init__(self, delivery: BaseDelivery, lease: Lease, began: float) -> None:
        self.delivery = delivery
        self.length = lease.length_ms / 1000
        self.begin(began)

    def begin(self, at: float) -> None:
        """Has been won or renewed by a command sent at this time."""
        self.due = at + self.length / 3
        self.until = at + self.length

    def failed(self, now: float) -> bool:
        """A renewal gave no answer: tries once more in time, unless that has run out."""
        self.due = min(now + self.length / 3, self.until)
        return now >= self.until


class Renewals:
    """Renews leases in one thread of its own, however many handlers run."""

    def __init__(self, renew: Callable[[BaseDelivery], bool]) -> None:
        self._renew = renew
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._running: set[Held] = set()
        self._thread: threading.Thread | None = None
        self._next = float("inf")

    def add(self, delivery: BaseDelivery, lease: Lease, began: float) -> Held:
        """Renews from now on, until the lease is removed or lost."""
        if self._process != os.getpid():
            # A forked child has neither the thread nor the parent's leases.
            self._reset()
        held = Held(delivery, lease, began)
        with self._changed:
            self._running.add(held)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="babelqueue-guard-renewals", daemon=True
                )
                self._thread.start()
            elif held.due < self._next:
                self._changed.notify()
        return held

    def remove(self, held: Held) -> None:
        """The handler has ended."""
        with self._changed:
            self._running.discard(held)

    def _run(self) -> None:
        while True:
            with self._changed:
                # As many as there are handlers running: few enough to look at each.
                self._next = min((held.due for held in self._running), default=float("inf"))
                wait = self._next - time.monotonic()
                if wait > 0 and not self._changed.wait(min(wait, _IDLE_S)) and not self._running:
                    self._thread = None
                    return
                now = time.monotonic()
                due = [held for held in self._running if held.due <= now]
            for held in due:
                if held in self._running and not self._keep(held):
                    self.remove(held)
                    _lose(held.delivery)

    def _keep(self, held: Held) -> bool:
        at = time.monotonic()
        try:
            kept = self._renew(held.delivery)
        except BaseException as error:
            # Whatever a store raises, the leases of the others go on being renewed.
            log.warning("the lease of %r was not renewed: %s", held.delivery.id, error)
            return not held.failed(time.monotonic())
        held.begin(at)
        return kept


class AsyncRenewal:
    """Renews one lease in the event loop. There is no task before it is due."""

    def __init__(
        self,
        renew: Callable[[BaseDelivery], Awaitable[bool]],
        delivery: BaseDelivery,
        lease: Lease,
        began: float,
    ) -> None:
        self._renew = renew
        self._held = Held(delivery, lease, began)
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(max(0, self._held.due - time.monotonic()), self._start)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._run())

    async def _run(self) -> None:
        held = self._held
        while True:
            at = time.monotonic()
            try:
                kept = await self._renew(held.delivery)
                held.begin(at)
            except Error as error:
                log.warning("the lease of %r was not renewed: %s", held.delivery.id, error)
                kept = not held.failed(time.monotonic())
            if not kept:
                _lose(held.delivery)
                return
            await asyncio.sleep(max(0, held.due - time.monotonic()))

    def stop(self) -> None:
        """The handler has ended."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()


def _lose(delivery: BaseDelivery) -> None:
    try:
        delivery._lose()
    except Exception:
        # The user's function; the leases of the others are renewed all the same.
        log.exception("a function given to on_lease_lost failed")
