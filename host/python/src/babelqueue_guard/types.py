"""The values that a guard, its stores and its callers exchange.

They are those of the WIT interface ``babelqueue:guard/types``, in Python's style:
a decision that says ``run`` is its own ticket, and ``held`` is ``True``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from .errors import Error

T = TypeVar("T")

Body: TypeAlias = "bytes | bytearray | memoryview | str"


class KnownId(str):
    """An id that the caller already knows, passed in the place of a body.

    Such as an AMQP ``message_id`` or an attribute ``bq-message-id``. The rules for a
    usable id apply to it as they do to one read from a body (contract, section 1).
    """

    __slots__ = ()


class FailOpen(str, Enum):
    """Why a delivery has no usable id, and runs without being deduplicated."""

    MALFORMED = "malformed"
    """The body is not one well-formed JSON object (RFC 8259)."""
    ABSENT = "absent"
    """The object has no member ``meta``, or a ``meta`` object without ``id``."""
    UNUSABLE = "unusable"
    """``meta`` or ``id`` is there, and breaks a rule."""

    __str__ = str.__str__


class Lease(NamedTuple):
    """A claim that was won."""

    token: str
    """Names this one acquisition."""
    length_ms: int
    """How long it lasts from the claim or the last renewal, by the store's clock."""


class Busy(NamedTuple):
    """A store's answer to a claim: another delivery holds a live lease."""

    left_ms: int
    """Milliseconds until that lease ends, unless it is renewed."""


class Done(NamedTuple):
    """A store's answer to a claim: the id has a mark, the effect has happened."""


ClaimOutcome: TypeAlias = "Lease | Busy | Done"
"""What a store answers to a claim. A :class:`Lease` means that it was won."""


class Decision(NamedTuple):
    """What to do with a delivery."""

    action: Literal["run", "skip", "park"]
    """
    ``run``: call the handler, then settle this decision. ``skip``: the effect has
    happened; acknowledge. ``park``: another delivery is at work; do not acknowledge,
    have it delivered again later, and do not count it as a failed attempt.
    """
    id: str | None = None
    """The message's id, where it has a usable one."""
    reason: FailOpen | None = None
    """Why there is no usable id."""
    lease: Lease | None = None
    """The claim that a run was granted, with a guard that claims."""
    left_ms: int | None = None
    """Milliseconds until the other delivery's lease ends, of a ``park``."""


class Identity(NamedTuple):
    """What a body says about its id: either of the two is ``None``."""

    id: str | None
    reason: FailOpen | None


class Settled(str, Enum):
    """What settling did."""

    NOTHING = "nothing"
    """Nothing was to be recorded."""
    MARKED = "marked"
    """The mark is set, and the lease, if there was one, is dropped."""
    MARKED_LATE = "marked-late"
    """The mark is set, but the lease was no longer ours: another delivery may have run."""
    RELEASED = "released"
    """The lease was dropped; the id is absent again."""
    LEASE_LOST = "lease-lost"
    """There was no lease of ours left to drop."""

    __str__ = str.__str__


@dataclass(slots=True)
class Result(Generic[T]):
    """What has become of a delivery.

    Whatever it says, acknowledge the delivery; unless it was parked.
    """

    status: Literal["ran", "skipped", "parked"]
    id: str | None = None
    reason: FailOpen | None = None
    """Why a delivery that ran has no usable id, and was not deduplicated."""
    value: T | None = None
    """What the handler returned."""
    settled: Settled = Settled.NOTHING
    mark_error: Error | None = None
    """
    Why the mark could not be set although the handler has succeeded. The effect has
    happened, so the delivery is to be acknowledged; should a copy of it come, it may
    run again.
    """
    left_ms: int | None = None
    """Milliseconds until the lease ends for which the delivery was parked."""

    @property
    def ran(self) -> bool:
        """Whether the handler was called, and succeeded."""
        return self.status == "ran"

    @property
    def skipped(self) -> bool:
        """Whether the effect had already happened."""
        return self.status == "skipped"

    @property
    def parked(self) -> bool:
        """Whether another delivery is at work: deliver again later."""
        return self.status == "parked"

    @property
    def marked(self) -> bool:
        """Whether the mark was set."""
        return self.settled in (Settled.MARKED, Settled.MARKED_LATE)
