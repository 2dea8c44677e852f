"""`ledger.py open` begins an empty ledger, with empty queues; `ledger.py close` counts
what the consumers have charged."""

import json
import os
import sys
from collections import Counter

import redis

LEDGER = "payments.ledger"
QUEUES = ["payments.node", "payments.go"]
QUEUES += [f"{queue}:processing" for queue in QUEUES]

client = redis.Redis.from_url(os.environ["REDIS_URL"])
if sys.argv[1] == "close":
    charges = [json.loads(entry) for entry in client.lrange(LEDGER, 0, -1)]
    times = Counter(charge["order"] for charge in charges)
    again = sorted(order for order, count in times.items() if count > 1)
    print(f"charged: {len(charges)} times, for {len(times)} orders")
    print(f"charged more than once: {', '.join(again) or 'none'}")
    print(f"in all: {sum(charge['cents'] for charge in charges) / 100:.2f}")
client.delete(LEDGER, *QUEUES)
