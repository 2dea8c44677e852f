"""Checks of what guards and stores are built with (contract, section 7)."""

from __future__ import annotations

import re

from .errors import StoreRejected

#: The longest that common brokers keep a message.
RETENTION_MS = 14 * 24 * 60 * 60 * 1000
LEASE_MS = 60_000

#: Ten thousand years: what every store's arithmetic can add to its clock.
_MOST_MS = 10_000 * 365 * 24 * 60 * 60 * 1000


def whole(setting: str, value: object, most: int, unit: str) -> int:
    """A whole number from 1, or a ``ValueError`` that names the setting."""
    # A bool is an int in Python, and never a quantity.
    if type(value) is int and 1 <= value <= most:
        return value
    raise ValueError(f"{setting} must be a whole number of {unit} from 1 to {most}, not {value!r}")


def duration_ms(setting: str, value: object) -> int:
    """Whole milliseconds that every store can use."""
    return whole(setting, value, _MOST_MS, "milliseconds")


def retention_ms(value: object) -> int | None:
    """How long a mark is kept; ``None`` is for ever."""
    return None if value is None else duration_ms("retention_ms", value)


def check_steps(store: str, retention_ms: int | None) -> None:
    """Refuses steps where marks are kept for ever (contract, section 4)."""
    if retention_ms is None:
        raise StoreRejected(
            f"{store}: steps need a retention, and this store keeps its marks for ever: "
            "give it one to use steps"
        )


def consumer_name(value: object) -> str | None:
    """A consumer's name, ``[a-z0-9_]{1,24}`` (contract, section 8)."""
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch("[a-z0-9_]{1,24}", value):
        return value
    raise ValueError(f"name must be 1 to 24 of a-z, 0-9 and _, not {value!r}")
