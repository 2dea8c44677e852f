"""How a wrapped handler's delivery is found in its arguments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from .types import Body, KnownId, Result


class Parked(Exception):
    """Raised by a wrapped handler: another delivery of the message is at work.

    The handler was not called. Have the message delivered again later, in about
    ``left_ms`` milliseconds, and do not count this as a failed attempt.
    """

    def __init__(self, result: Result[Any]) -> None:
        super().__init__(
            f"another delivery of {result.id!r} is at work, for {result.left_ms} ms at most "
            "unless it renews its lease; deliver this one again later"
        )
        self.id = result.id
        self.left_ms = result.left_ms


def delivery_of(*args: Any, **kwargs: Any) -> Body:
    """A body as the first argument, or the id in a mapping that is the second.

    The latter are the handlers of the ``babelqueue`` package: ``(data, meta)`` or
    ``(data, meta, envelope)``.
    """
    if args and isinstance(args[0], (bytes, bytearray, memoryview, str)):
        return args[0]
    meta = args[1] if len(args) > 1 else kwargs.get("meta")
    if not isinstance(meta, Mapping):
        raise TypeError(
            "found neither a body as the first argument nor a mapping as the second: "
            "tell wrap where the delivery is, as in wrap(delivery=lambda message: message.body)"
        )
    if isinstance(meta.get("id"), str):
        return KnownId(meta["id"])
    # The component says why there is no id; what else it may be makes no difference.
    return b'{"meta":{"id":null}}' if "id" in meta else b'{"meta":{}}'


def headers_of(*args: Any, **kwargs: Any) -> Mapping[str, Any]:
    """The headers that the ``babelqueue`` package keeps for the message being handled."""
    # If nobody has imported it, nobody is handling a message of its.
    babelqueue = sys.modules.get("babelqueue")
    headers_from_context = getattr(babelqueue, "headers_from_context", None)
    return headers_from_context() if callable(headers_from_context) else {}
