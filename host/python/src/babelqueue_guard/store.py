"""What a guard asks of its store. Any object with these methods is one.

Each method may raise :class:`~babelqueue_guard.StoreUnavailable` or
:class:`~babelqueue_guard.StoreRejected`; any other ordinary exception counts as
unavailable, with the original as its cause. What is no ``Exception`` passes unchanged.

With :class:`~babelqueue_guard.AsyncGuard` each method may be ``async`` instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from .errors import StoreRejected, StoreUnavailable
from .types import Busy, ClaimOutcome, Done, Lease


class Store(Protocol):
    """The seen-set: the three questions that every store answers.

    Ids are kept apart character by character: no trimming, folding or normalisation.
    """

    def seen(self, id: str, /) -> bool:
        """Whether the id has a mark that has not expired; false if it is only leased."""

    def remember(self, id: str, /) -> object:
        """Sets the mark, or restarts its retention. Called after the handler's success."""

    def forget(self, id: str, /) -> object:
        """Removes the mark; none is no error. A live lease is not touched."""


class ClaimingStore(Store, Protocol):
    """Atomic claims: at most one live lease on an id (contract, section 3)."""

    def claim(self, id: str, /) -> ClaimOutcome:
        """Takes the lease, if the id is absent or its lease has lapsed.

        Of any number of calls at once, one wins. One that is cut short, by a
        cancellation or an interrupt, gives back what it may have taken.
        """

    def renew(self, id: str, token: str, /) -> bool:
        """Extends the live lease that the token owns; whether there was one."""

    def complete(self, id: str, token: str, /) -> bool:
        """Sets the mark in any case, and drops the lease if the token owns it.

        True if it did; false says that the lease was no longer ours.
        """

    def release(self, id: str, token: str, /) -> bool:
        """Drops the lease if the token owns it; whether it did."""


class MarkingStore(Store, Protocol):
    """Marks that are set before an effect (contract, section 4)."""

    def set_once(self, id: str, step: str, /) -> bool:
        """Sets the step's own mark together with its retention; whether this call set it.

        The command is sent once and never again by the store itself. Steps need a
        retention: a store that keeps its marks for ever raises
        :class:`~babelqueue_guard.StoreRejected`, and sends nothing.
        """


class AsyncStore(Protocol):
    """A :class:`Store` for :class:`~babelqueue_guard.AsyncGuard`; each method may be plain."""

    def seen(self, id: str, /) -> Awaitable[bool] | bool:
        """As :meth:`Store.seen`."""

    def remember(self, id: str, /) -> object:
        """As :meth:`Store.remember`."""

    def forget(self, id: str, /) -> object:
        """As :meth:`Store.forget`."""


_CLAIMS = ("claim", "renew", "complete", "release")

#: All that a store may be asked.
QUESTIONS = ("seen", "remember", "forget", *_CLAIMS, "set_once")


def check_methods(store: object, claim: bool) -> None:
    """Refuses what lacks a method, with a ``TypeError`` that names it."""
    needed = ("seen", "remember", "forget", *(_CLAIMS if claim else ()))
    missing = [name for name in needed if not callable(getattr(store, name, None))]
    if missing:
        why = "a guard that claims" if claim else "a guard"
        raise TypeError(f"{_name(store)} lacks {', '.join(missing)}, which {why} asks for")


def method_of(store: object, question: str) -> Callable[..., Any]:
    """The method that answers a question."""
    method = getattr(store, question, None)
    if not callable(method):
        raise StoreRejected(f"{_name(store)} lacks {question}, which this needs")
    found: Callable[..., Any] = method
    return found


def unavailable(store: object, question: str, error: Exception) -> StoreUnavailable:
    """What is raised in the place of a store's exception that is none of ours."""
    return StoreUnavailable(f"{_name(store)}.{question} failed: {type(error).__name__}: {error}")


def as_bool(store: object, question: str, answer: object) -> bool:
    """A store's yes or no. Nothing else is guessed at: ``None`` is no answer."""
    if isinstance(answer, int) and answer in (0, 1):
        return bool(answer)
    raise StoreRejected(
        f"{_name(store)}.{question} answered {answer!r}; it must answer True or False"
    )


def as_claim(store: object, answer: object) -> ClaimOutcome:
    """A store's answer to a claim, if it is one."""
    if isinstance(answer, Lease):
        # What has no token, or no length, cannot be given back or renewed.
        if isinstance(answer.token, str) and answer.token and _is_u64(answer.length_ms):
            return answer
    elif isinstance(answer, Busy):
        if _is_u64(answer.left_ms):
            return answer
    elif isinstance(answer, Done):
        return answer
    raise StoreRejected(
        f"{_name(store)}.claim answered {answer!r}; it must answer a Lease, Busy or Done"
    )


def _is_u64(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _name(store: object) -> str:
    return type(store).__name__
