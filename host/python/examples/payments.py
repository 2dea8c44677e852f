"""One charge for each order, however often its message is delivered.

A BabelQueue app whose broker delivers some messages more than once, and whose card
service fails once. Needs the package ``babelqueue``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from babelqueue import BabelQueue, EnvelopeCodec

from babelqueue_guard import Guard, MemoryStore

URN = "urn:babel:orders:created"

app = BabelQueue("memory://", queue="orders")
# Shared by every consumer of the fleet it would be a store on Redis:
#   from babelqueue_guard.redis import RedisStore
#   guard = Guard(RedisStore.from_url("redis://localhost:6379/0"))
guard = Guard(MemoryStore())
outages = iter([True])


@app.handler(URN)
@guard.wrap
def charge(data: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    if data["order"] == 2 and next(outages, False):
        print("order 2: the card service is down")
        raise ConnectionError
    print(f"order {data['order']}: charged {data['amount']}")


for order, amount, copies in ((1, "12.50", 3), (2, "8.00", 2), (3, "99.90", 1)):
    envelope = EnvelopeCodec.make(URN, {"order": order, "amount": amount}, queue="orders")
    for _ in range(copies):
        app.transport.publish("orders", EnvelopeCodec.encode(envelope))

app.consume(max_messages=100, timeout=0)
