"""A worker (README.md) over the babelqueue package alone, without any guard: its app, its
envelopes, its idempotency helper, and a store of three methods on the contract's keys."""

import json
import logging
import sys

import redis
from babelqueue import BabelQueue, EnvelopeCodec, is_replay
from babelqueue.idempotency import wrap

URN = "urn:babel:interop:sent"


class Store:
    """What someone writes who knows the keys and nothing else."""

    def __init__(self, url, retention_ms):
        self.client, self.retention_ms = redis.Redis.from_url(url), retention_ms

    def seen(self, message_id):
        return self.client.exists(f"bq:idemp:{message_id}") == 1

    def remember(self, message_id):
        self.client.set(f"bq:idemp:{message_id}", "1", px=self.retention_ms)

    def forget(self, message_id):
        self.client.delete(f"bq:idemp:{message_id}")


class Worker:
    def on_open(self, request):
        other = request.keys() - {"op", "store", "retention_ms"}
        if other:
            return {"error": "unsupported", "detail": f"no {', '.join(sorted(other))}"}
        self.store = Store(request["store"], request["retention_ms"])
        return {"ok": True}

    def on_envelope(self, request):
        return {"body": envelope()}

    def on_process(self, request):
        body = envelope(request["id"]) if "id" in request else request["body"]
        # Neither run nor skipped unless the helper itself has returned.
        answer = dict.fromkeys(("id", "outcome", "replay")) | {"decision": "error", "marked": False}

        def handler(data, meta):
            answer.update(decision="run", id=meta["id"], replay=is_replay(), outcome="failed")
            if request.get("outcome") == "throw":
                raise RuntimeError("told to fail")
            answer["outcome"] = "succeeded"

        guarded = wrap(self.store, handler)

        def on_sent(data, meta):
            try:
                guarded(data, meta)
            except redis.RedisError as error:
                answer.update(error="unavailable", detail=str(error))
                raise
            if answer["outcome"] is None:
                answer.update(decision="skip", id=meta["id"])
            else:
                answer["marked"] = True

        app = BabelQueue("memory://", queue="interop", max_attempts=1)
        app.register(URN, on_sent)
        app.transport.publish_with_headers("interop", body, request.get("headers", {}))
        app.consume(max_messages=1, timeout=0)
        return answer

    def on_seen(self, request):
        return {"seen": self.store.seen(request["id"])}

    def on_remember(self, request):
        self.store.remember(request["id"])
        return {"ok": True}

    def on_forget(self, request):
        self.store.forget(request["id"])
        return {"ok": True}

    def answer(self, request):
        operation = getattr(self, f"on_{request['op']}", None)
        if operation is None:
            return {"error": "unsupported", "detail": f"no operation {request['op']}"}
        return operation(request)


def envelope(id=None):
    made = EnvelopeCodec.make(URN, {}, queue="interop")
    if id is not None:
        made["meta"]["id"] = id
    return EnvelopeCodec.encode(made)


# Its app warns of every handler that fails, as some are told to.
logging.getLogger("babelqueue.app").setLevel(logging.ERROR)
worker = Worker()
for line in sys.stdin:
    print(json.dumps(worker.answer(json.loads(line))), flush=True)
