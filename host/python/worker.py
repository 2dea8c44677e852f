"""Answers requests, a JSON object a line, with this host's guard (tests/README.md)."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from babelqueue_guard import (
    Body,
    Delivery,
    Error,
    Guard,
    GuardError,
    KnownId,
    MemoryStore,
    StoreRejected,
)
from babelqueue_guard.redis import RedisStore

Request = dict[str, Any]
Answer = dict[str, Any]


class Thrown(Exception):
    """What a handler raises that is told to fail."""


class Worker:
    """The guard that the last ``open`` made."""

    def __init__(self) -> None:
        self.store: MemoryStore | RedisStore = MemoryStore()
        self.guard = Guard(self.store)

    def answer(self, request: Request) -> Answer:
        operation = getattr(self, "on_" + str(request.get("op")), None)
        if operation is None:
            return {"error": "unsupported", "detail": f"no operation {request.get('op')!r}"}
        try:
            answer: Answer = operation(request)
        except Error as error:
            return {"error": name_of(error), "detail": str(error)}
        except (ValueError, TypeError, KeyError, OSError) as error:
            return {"error": "unsupported", "detail": f"{type(error).__name__}: {error}"}
        return answer

    def on_open(self, request: Request) -> Answer:
        url = request["store"]
        times = {key: request[key] for key in ("retention_ms", "lease_ms") if key in request}
        names = {key: request[key] for key in ("prefix", "name") if key in request}
        if url == "memory:":
            # It is shared with nobody, so a name tells it from nobody.
            self.store = MemoryStore(**times)
        elif url.startswith("redis://"):
            self.store = RedisStore.from_url(url, **times, **names)
        else:
            raise ValueError(f"no store {url!r}")
        self.guard = Guard(self.store, claim=request.get("claim", False))
        return {"ok": True}

    def on_verdict(self, request: Request) -> Answer:
        identity = self.guard.identify(read(request["file"]))
        return {"id": identity.id, "reason": identity.reason}

    def on_process(self, request: Request) -> Answer:
        answer: Answer = dict.fromkeys(
            ("id", "reason", "outcome", "error", "left_ms", "replay", "step")
        )
        answer |= {"decision": "error", "marked": False}

        def handler(delivery: Delivery) -> None:
            answer.update(
                decision="run",
                id=delivery.id,
                reason=delivery.reason,
                replay=delivery.replay,
                outcome="failed",
            )
            if "step" in request:
                answer["step"] = delivery.once(request["step"])
            time.sleep(request.get("hold_ms", 0) / 1000)
            if request.get("outcome", "ok") == "throw":
                raise Thrown
            answer["outcome"] = "succeeded"

        try:
            result = self.guard.process(body_of(request), handler, headers=request.get("headers"))
        except Thrown:
            return answer
        except Error as error:
            return answer | {"error": name_of(error), "detail": str(error)}
        if result.ran:
            answer["marked"] = result.marked
            if result.mark_error is not None:
                answer |= {
                    "error": name_of(result.mark_error),
                    "detail": str(result.mark_error),
                }
        else:
            answer |= {
                "decision": "park" if result.parked else "skip",
                "id": result.id,
                "left_ms": result.left_ms,
            }
        return answer

    def on_seen(self, request: Request) -> Answer:
        return {"seen": self.store.seen(request["id"])}

    def on_remember(self, request: Request) -> Answer:
        self.store.remember(request["id"])
        return {"ok": True}

    def on_forget(self, request: Request) -> Answer:
        self.guard.forget(request["id"])
        return {"ok": True}


def body_of(request: Request) -> Body:
    if "id" in request:
        return KnownId(request["id"])
    if "file" in request:
        return read(request["file"])
    body: str = request["body"]
    return body


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def name_of(error: Error) -> str:
    if isinstance(error, GuardError):
        return "guard"
    return "rejected" if isinstance(error, StoreRejected) else "unavailable"


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
