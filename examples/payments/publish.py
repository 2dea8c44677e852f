"""`publish.py PAYMENTS COPIES` publishes payments as envelopes of the babelqueue package,
and every one of them again and again to both consumers, as a broker does that never sees
an acknowledgement."""

import os
import sys

from babelqueue import BabelQueue, EnvelopeCodec

payments, copies = map(int, sys.argv[1:])
app = BabelQueue(os.environ["REDIS_URL"])

envelopes = [
    EnvelopeCodec.make(
        "urn:babel:payments:requested",
        {"order": f"order-{number:02}", "cents": 100 * number},
        queue="payments",
    )
    for number in range(1, payments + 1)
]
for _ in range(copies):
    for envelope in envelopes:
        for queue in ("payments.node", "payments.go"):
            app.transport.publish(queue, EnvelopeCodec.encode(envelope))

print(f"published: {payments} payments, {payments * copies} deliveries to each consumer")
