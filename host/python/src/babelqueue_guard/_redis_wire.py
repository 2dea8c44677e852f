"""What the Redis stores send, and what the replies mean (contract, section 8).

The same commands in every language: a consumer in one skips what another has handled.
Whatever waits for a reply is in :mod:`babelqueue_guard.redis`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

from redis import exceptions
from redis.client import NEVER_DECODE

from . import settings
from .errors import StoreError, StoreRejected, StoreUnavailable
from .types import Busy, ClaimOutcome, Done, Lease

Command: TypeAlias = "tuple[Any, ...]"

#: Replies are bytes, also from a client that decodes them: other programs' values need
#: not be text.
RAW: dict[str, Any] = {NEVER_DECODE: True}

_UNREACHED = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)

#: Refusals that pass by themselves, by the first word of the server's reply.
_PASSING = frozenset(
    (
        "ASK",
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "MOVED",
        "NOREPLICAS",
        "OOM",
        "READONLY",
        "TRYAGAIN",
    )
)
_PASSING_TYPES = (
    exceptions.AskError,
    exceptions.BusyLoadingError,
    exceptions.ClusterDownError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
)
_REFUSED_TYPES = (
    exceptions.AuthenticationError,
    exceptions.AuthenticationWrongNumberOfArgsError,
    exceptions.AuthorizationError,
    exceptions.DataError,
    exceptions.NoPermissionError,
)


def _script(name: str) -> bytes:
    return (resources.files(__package__) / "artifacts" / name).read_bytes()


_RENEW = _script("renew.lua")
_RELEASE = _script("release.lua")


class Wire:
    """Keys, commands and their times for one consumer's marks, leases and steps."""

    def __init__(
        self, prefix: str, name: str | None, retention_ms: int | None, lease_ms: int
    ) -> None:
        if not isinstance(prefix, str):
            raise ValueError(f"prefix must be text, not {prefix!r}")
        consumer = settings.consumer_name(name)
        at = "" if consumer is None else f"@{consumer}"
        self._mark = f"{prefix}idemp{at}:".encode()
        self._lease = f"{prefix}lease{at}:".encode()
        self._once = f"{prefix}once{at}:".encode()
        self._retention_ms = settings.retention_ms(retention_ms)
        self._keep: Command = () if self._retention_ms is None else ("PX", self._retention_ms)
        self.lease_ms = settings.duration_ms("lease_ms", lease_ms)

    def seen(self, id: str) -> Command:
        # A type that is no string is refused by the server, not taken for a mark.
        return ("GET", self._mark + id.encode())

    def remember(self, id: str) -> Command:
        # GET makes the server look at the type before it writes.
        return ("SET", self._mark + id.encode(), "1", *self._keep, "GET")

    def forget(self, id: str) -> Command:
        # DEL would take away whatever is there.
        return ("GETDEL", self._mark + id.encode())

    def claim(self, id: str, token: str) -> list[Command]:
        """What takes the lease, and looks who has it; :meth:`seen` comes after it."""
        lease = self._lease + id.encode()
        return [
            ("SET", lease, token, "NX", "PX", self.lease_ms),
            ("GET", lease),
            ("PTTL", lease),
        ]

    def renew(self, id: str, token: str) -> Command:
        return ("EVAL", _RENEW, 1, self._lease + id.encode(), token, self.lease_ms)

    def release(self, id: str, token: str) -> Command:
        return ("EVAL", _RELEASE, 1, self._lease + id.encode(), token)

    def set_once(self, id: str, step: str) -> Command:
        settings.check_steps("Redis", self._retention_ms)
        return ("SET", self._step(id, step), "1", "NX", *self._keep)

    def step(self, id: str, step: str) -> Command:
        return ("GET", self._step(id, step))

    def _step(self, id: str, step: str) -> bytes:
        return self._once + f"{step}:{id}".encode()


def new_token() -> str:
    """Names one acquisition; no other can equal or guess it."""
    return secrets.token_hex(16)


def still_held(dropped: object) -> bool:
    """Whether the lease was ours until a completion dropped it.

    The mark is set by then, and counts. A lease that could not be asked for lapses, and
    nothing says that another has it.
    """
    return isinstance(dropped, Exception) or dropped == 1


def concerns(info: Mapping[str, Any]) -> list[str]:
    """What an operator should know, by the server's answer to `INFO memory`."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return []
    return [
        f"maxmemory-policy is {policy}: short of memory, the server forgets which messages "
        "were processed, and they run again; noeviction is right"
    ]


class Claimed(NamedTuple):
    """What the replies to a claim say."""

    outcome: ClaimOutcome | StoreError
    ours: bool
    """Whether the lease was taken by us, and is to be given back unless the claim is won."""


def claimed(
    commands: Sequence[Command], replies: Sequence[Any], token: str, lease_ms: int
) -> Claimed:
    """The outcome of a claim: who holds the lease first, the mark second."""
    took, owner, left, mark = replies
    # Found after a lost reply, our own token means that the first try took the lease.
    ours = took is True or owner == token.encode()
    for command, reply in zip(commands, replies, strict=True):
        if isinstance(reply, Exception):
            return Claimed(failure(command, reply), ours)
    if mark is not None:
        return Claimed(Done(), ours)
    if ours:
        return Claimed(Lease(token, lease_ms), ours)
    # It may have lapsed between the commands, or have no end: ask again soon.
    return Claimed(Busy(max(1, left)), ours)


def unanswered(error: Exception) -> bool:
    """Whether no reply came: the command may have been carried out or not."""
    # redis-py derives some of the server's refusals from its ConnectionError.
    refused = isinstance(error, (exceptions.BusyLoadingError, *_REFUSED_TYPES))
    return isinstance(error, _UNREACHED) and not refused


def failure(command: Command, error: Exception) -> StoreError:
    """A client's exception as one of ours."""
    if isinstance(error, StoreError):
        return error
    what = f"Redis: {_shown(command)}: {error or type(error).__name__}"
    known = StoreUnavailable(what) if _passes(error) else StoreRejected(what)
    known.__cause__ = error
    return known


def _passes(error: Exception) -> bool:
    if isinstance(error, _REFUSED_TYPES):
        return False
    if isinstance(error, (*_UNREACHED, *_PASSING_TYPES)):
        return True
    if isinstance(error, exceptions.ResponseError):
        words = str(error).split(maxsplit=1)
        return bool(words) and words[0] in _PASSING
    # What the client itself could not do: retried, since nothing says that it is final.
    return True


def _shown(command: Command) -> str:
    """The command and its key: scripts and tokens are of no use to a reader."""
    name, key = command[0], command[3 if command[0] == "EVAL" else 1]
    shown = key.decode("utf-8", "replace") if isinstance(key, bytes) else key
    return f"{name!s} {shown!s}"
