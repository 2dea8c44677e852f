"""The errors that leave a delivery undecided (contract, section 7).

On any of them the handler was not called and the delivery must not be
acknowledged.
"""

from __future__ import annotations

__all__ = ["Error", "GuardError", "StoreError", "StoreRejected", "StoreUnavailable"]


class Error(Exception):
    """What every error of this package derives from."""


class StoreError(Error):
    """The store gave no answer."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, timed out, is loading, read-only or failing over.

    Delivering the message again later is right.
    """


class StoreRejected(StoreError):
    """The store was reached and refused, for a reason that time does not mend.

    Wrong credentials, something of another type under the key, a missing
    permission: an operator has to act, and the message says on what.
    """


class GuardError(Error):
    """The component itself could not decide: a body over the limit, or a trap.

    The next delivery is decided normally.
    """
