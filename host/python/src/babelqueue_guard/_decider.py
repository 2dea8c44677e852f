"""The decision, driven in two phases (contract, sections 1 to 4).

The component asks its store at most one question in a call. So a call supposes an
answer and tells what was asked; the guard then asks the real store in its own way,
and where the answer is another one a second call draws the conclusion. Nothing here
waits, and nothing here decides.
"""

from __future__ import annotations

from ._guest import LARGE, PARK, REJECTED, RUN_LEASED, RUN_SEEN, SKIP, UNAVAILABLE, Reply, runtime
from .errors import GuardError, StoreRejected, StoreUnavailable
from .types import Body, Busy, ClaimOutcome, Decision, FailOpen, Identity, KnownId, Lease, Settled

#: The reasons, numbered as the component numbers them.
_REASONS = (FailOpen.MALFORMED, FailOpen.ABSENT, FailOpen.UNUSABLE)
_SETTLED = (
    Settled.NOTHING,
    Settled.MARKED,
    Settled.MARKED_LATE,
    Settled.RELEASED,
    Settled.LEASE_LOST,
)

#: The runs without a usable id.
OPEN = tuple(Decision("run", reason=reason) for reason in _REASONS)

_WON, _BUSY, _DONE = 0, 1, 2
_HELD, _LOST = 0, 1

#: The desk has room for more; no store has use for it.
_LONGEST_TOKEN = 1024


def encoded(body: Body) -> bytes:
    """The bytes of a body or an id.

    Text may hold unpaired surrogates. Their three bytes are no UTF-8, which the
    component refuses in an id and ignores elsewhere, as it does with a body of bytes.
    """
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return bytes(body)


class Decider:
    """One world of the component, and the limit of what is passed to it."""

    __slots__ = ("_runtime", "_steps", "decide_small", "max_body", "small")

    def __init__(self, claim: bool, max_body: int) -> None:
        self._runtime = runtime("claiming" if claim else "plain", max_body)
        self._steps = self._runtime if claim else None
        self.max_body = max_body
        #: Bodies up to this many bytes may be passed to :attr:`decide_small`.
        self.small = min(max_body, LARGE - 1)
        #: :meth:`suppose` for bytes that are small.
        self.decide_small = self._runtime.decide

    def suppose(self, body: Body) -> tuple[int, str]:
        """Decides, supposing that the store stops nothing: what came out, and the id.

        Below 3 it is the reason of a run without an id, and nothing is to be asked.

        Raises :class:`GuardError` for a body over the limit.
        """
        data = encoded(body)
        self._check(data)
        suppose = self._runtime.suppose
        if isinstance(body, KnownId):
            reply = self._runtime.call("decide-id", data, len(data), suppose, 0, 0)
        elif len(data) <= self.small:
            return self._runtime.decide(data)
        else:
            reply = self._runtime.call("decide", data, len(data), suppose)
        return reply.value, reply.id

    def identify(self, body: Body) -> Identity:
        """What a body says about its id."""
        out, id = self.suppose(body)
        return Identity(id, None) if out >= RUN_SEEN else Identity(None, _REASONS[out])

    def seen(self, id: str) -> Decision:
        """The decision on an id that the store has seen."""
        if self._runtime.decide_seen(id) != SKIP:
            raise GuardError("the component drew a conclusion that does not fit")
        return tuple.__new__(Decision, ("skip", id, None, None, None))

    def claimed(self, id: str, outcome: ClaimOutcome) -> Decision:
        """The decision on an id, by what the store answered to the claim."""
        data = id.encode()
        size = len(data)
        if isinstance(outcome, Lease):
            token = outcome.token.encode()
            if len(token) > _LONGEST_TOKEN:
                raise StoreRejected(
                    f"a claim's token must have at most {_LONGEST_TOKEN} bytes, not {len(token)}"
                )
            reply = self._runtime.call(
                "decide-id", data + token, size, _WON, outcome.length_ms, len(token)
            )
            return self._conclude(reply, lease=outcome)
        if isinstance(outcome, Busy):
            reply = self._runtime.call("decide-id", data, size, _BUSY, outcome.left_ms, 0)
            return self._conclude(reply, left_ms=outcome.left_ms)
        return self._conclude(self._runtime.call("decide-id", data, size, _DONE, 0, 0))

    def settle(self, decision: Decision, succeeded: bool, held: bool = True) -> Reply:
        """Settles a run, supposing that its lease is still ours or that it is not."""
        strings, ticket = _ticket(decision)
        return self._runtime.call(
            "settle", strings, _HELD if held else _LOST, *ticket, 0 if succeeded else 1
        )

    def renew(self, decision: Decision, held: bool = True) -> Reply:
        """Renews a run's lease; ``value`` 0 means held."""
        strings, ticket = _ticket(decision)
        return self._runtime.call("renew", strings, _HELD if held else _LOST, *ticket)

    def once(self, decision: Decision, step: str, first: bool = True) -> Reply:
        """Whether a step is to run; ``value`` 1 means that it is."""
        if self._steps is None:
            # The world `plain` has no steps, and an instance no memory of who decided.
            self._steps = runtime("claiming", self.max_body)
        strings, ticket = _ticket(decision)
        name = encoded(step)
        self._check(name)
        return refused(self._steps.call("once", strings + name, int(first), *ticket, len(name)))

    def forget(self, id: str) -> Reply:
        """Asks for an id's mark to be removed."""
        data = encoded(id)
        self._check(data)
        return refused(self._runtime.call("forget", data, len(data)))

    def _conclude(
        self, reply: Reply, lease: Lease | None = None, left_ms: int | None = None
    ) -> Decision:
        if reply.value == SKIP:
            return Decision("skip", reply.id)
        if reply.value == PARK and left_ms is not None:
            return Decision("park", reply.id, left_ms=left_ms)
        if reply.value == RUN_LEASED and lease is not None:
            return Decision("run", reply.id, lease=lease)
        raise GuardError(f"the component drew a conclusion that does not fit: {reply}")

    def _check(self, data: bytes) -> None:
        if len(data) > self.max_body:
            raise GuardError(
                f"a body of {len(data)} bytes is over the limit of {self.max_body}; "
                "raise max_body if such messages are meant to be"
            )


def run(id: str) -> Decision:
    """The decision to run on an id that was not seen."""
    # A named tuple's own constructor takes twice as long.
    return tuple.__new__(Decision, ("run", id, None, None, None))


def settled(reply: Reply) -> Settled:
    """The outcome that a reply to settling names."""
    return _SETTLED[refused(reply).value]


def refused(reply: Reply) -> Reply:
    """Passes a reply on, unless the component refused what it was given."""
    if reply.value == REJECTED:
        raise StoreRejected(reply.second)
    if reply.value == UNAVAILABLE:
        raise StoreUnavailable(reply.second)
    return reply


def _ticket(decision: Decision) -> tuple[bytes, tuple[int, int, int, int, int]]:
    """A ticket's strings, and the numbers that the driver takes for it."""
    if decision.action != "run":
        raise ValueError(f"only a decision to run can be settled, not one to {decision.action}")
    if decision.id is None:
        if decision.reason is None:
            raise ValueError("a decision to run has an id or a reason")
        return b"", (0, _REASONS.index(decision.reason), 0, 0, 0)
    id = encoded(decision.id)
    if decision.lease is None:
        return id, (1, 0, len(id), 0, 0)
    token = encoded(decision.lease.token)
    return id + token, (2, 0, len(id), len(token), decision.lease.length_ms)
