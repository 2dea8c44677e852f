"""The guard around a handler of one's own, for threads and for asyncio."""

from __future__ import annotations

import asyncio

from babelqueue_guard import AsyncDelivery, AsyncGuard, Delivery, Guard, MemoryStore

body = b'{"job":"urn:babel:orders:created","data":{"order":7},"meta":{"id":"5f0c1d2e"}}'


def handler(delivery: Delivery) -> str:
    return f"handled {delivery.id}"


guard = Guard(MemoryStore())
for _ in range(2):
    result = guard.process(body, handler)
    print(result.status, result.value)


async def async_handler(delivery: AsyncDelivery) -> str:
    await asyncio.sleep(0)
    return f"handled {delivery.id}"


async def main() -> None:
    guard = AsyncGuard(MemoryStore(), claim=True)
    copies = await asyncio.gather(*(guard.process(body, async_handler) for _ in range(2)))
    print([copy.status for copy in copies])
    print((await guard.process(body, async_handler)).status)


asyncio.run(main())
