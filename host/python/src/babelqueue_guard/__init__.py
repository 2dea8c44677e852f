"""Every queue delivers at least once; the guard makes the effect happen once.

    from babelqueue_guard import Guard, MemoryStore

    guard = Guard(MemoryStore())
    result = guard.process(body, lambda delivery: charge(delivery.body))

The decision is a WebAssembly component, the same one in every language, and
``docs/contract.md`` of the project says what it decides.
"""

from .aio import AsyncGuard
from .delivery import AsyncDelivery, Delivery, current_delivery
from .errors import Error, GuardError, StoreError, StoreRejected, StoreUnavailable
from .guard import Guard
from .memory import MemoryStore
from .store import AsyncStore, ClaimingStore, MarkingStore, Store
from .types import (
    Body,
    Busy,
    ClaimOutcome,
    Decision,
    Done,
    FailOpen,
    Identity,
    KnownId,
    Lease,
    Result,
    Settled,
)
from .wrapping import Parked

__version__ = "0.1.0"

__all__ = [
    "AsyncDelivery",
    "AsyncGuard",
    "AsyncStore",
    "Body",
    "Busy",
    "ClaimOutcome",
    "ClaimingStore",
    "Decision",
    "Delivery",
    "Done",
    "Error",
    "FailOpen",
    "Guard",
    "GuardError",
    "Identity",
    "KnownId",
    "Lease",
    "MarkingStore",
    "MemoryStore",
    "Parked",
    "Result",
    "Settled",
    "Store",
    "StoreError",
    "StoreRejected",
    "StoreUnavailable",
    "current_delivery",
]
