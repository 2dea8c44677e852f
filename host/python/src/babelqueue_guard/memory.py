"""A store in this process's memory, for tests and for consumers of one process."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from time import monotonic
from typing import Generic, TypeVar

from . import settings
from .types import Busy, ClaimOutcome, Done, Lease

T = TypeVar("T")

_FOREVER = float("inf")


class _Expiring(OrderedDict[str, tuple[float, T]], Generic[T]):
    """Entries that expire in the order in which they were put, which is kept."""

    __slots__ = ()

    def live(self, key: str, now: float) -> tuple[float, T] | None:
        entry = self.get(key)
        return entry if entry is not None and entry[0] > now else None

    def put(self, key: str, until: float, value: T) -> None:
        self[key] = (until, value)
        self.move_to_end(key)

    def evict(self, now: float, most: int) -> None:
        """Drops what has expired, and the oldest beyond a number."""
        while self and (len(self) > most or next(iter(self.values()))[0] <= now):
            self.popitem(last=False)


class MemoryStore:
    """Marks, leases and steps in memory, by the monotonic clock. Thread-safe.

    Nothing is shared with other processes, and nothing survives this one.

    Bounded by ``retention_ms`` (14 days; ``None`` for ever, with which steps are rejected)
    and by ``max_entries`` marks (1,000,000) and as many steps: beyond them the ones that
    were marked first go first, and a copy of such a message runs again. No call takes time
    that grows with the entries.

    Raises ``ValueError`` for a setting that is not a positive whole number.
    """

    def __init__(
        self,
        *,
        retention_ms: int | None = settings.RETENTION_MS,
        lease_ms: int = settings.LEASE_MS,
        max_entries: int = 1_000_000,
    ) -> None:
        self._retention_ms = settings.retention_ms(retention_ms)
        self._retention = _FOREVER if self._retention_ms is None else self._retention_ms / 1000
        self._lease_ms = settings.duration_ms("lease_ms", lease_ms)
        self._max_entries = settings.whole("max_entries", max_entries, 2**53, "entries")
        self._lock = threading.Lock()
        self._marks: _Expiring[None] = _Expiring()
        self._steps: _Expiring[None] = _Expiring()
        self._leases: _Expiring[str] = _Expiring()

    def seen(self, id: str) -> bool:
        """Whether the id has a mark."""
        # A single look needs no lock.
        mark = self._marks.get(id)
        return mark is not None and mark[0] > monotonic()

    def remember(self, id: str) -> None:
        """Sets the mark, or restarts its retention."""
        with self._lock:
            self._mark(self._marks, id)

    def forget(self, id: str) -> None:
        """Removes the mark. A lease is not touched."""
        with self._lock:
            self._marks.pop(id, None)

    def claim(self, id: str) -> ClaimOutcome:
        """Takes the lease, unless there is a mark or another's live lease."""
        with self._lock:
            now = monotonic()
            if self._marks.live(id, now):
                return Done()
            held = self._leases.live(id, now)
            if held:
                return Busy(max(1, round((held[0] - now) * 1000)))
            token = secrets.token_hex(16)
            self._leases.put(id, now + self._lease_ms / 1000, token)
            # Those that are live are as many as there are deliveries in progress.
            self._leases.evict(now, len(self._leases))
            return Lease(token, self._lease_ms)

    def renew(self, id: str, token: str) -> bool:
        """Extends our own live lease; whether it was still ours."""
        with self._lock:
            now = monotonic()
            if not self._owns(id, token, now):
                return False
            self._leases.put(id, now + self._lease_ms / 1000, token)
            return True

    def complete(self, id: str, token: str) -> bool:
        """Sets the mark in any case, and drops the lease if it is ours; whether it was."""
        with self._lock:
            self._mark(self._marks, id)
            return self._drop(id, token)

    def release(self, id: str, token: str) -> bool:
        """Drops the lease if it is ours; whether it was."""
        with self._lock:
            return self._drop(id, token)

    def set_once(self, id: str, step: str) -> bool:
        """Sets the mark of one step; whether this call set it.

        Raises :class:`~babelqueue_guard.StoreRejected` if marks are kept for ever.
        """
        settings.check_steps("MemoryStore", self._retention_ms)
        # A step's name has no colon, so no two pairs share a key.
        key = f"{step}:{id}"
        with self._lock:
            if self._steps.live(key, monotonic()):
                return False
            self._mark(self._steps, key)
            return True

    def _mark(self, marks: _Expiring[None], key: str) -> None:
        now = monotonic()
        marks.put(key, now + self._retention, None)
        marks.evict(now, self._max_entries)

    def _owns(self, id: str, token: str, now: float) -> bool:
        held = self._leases.live(id, now)
        return held is not None and held[1] == token

    def _drop(self, id: str, token: str) -> bool:
        owned = self._owns(id, token, monotonic())
        if owned:
            del self._leases[id]
        return owned
