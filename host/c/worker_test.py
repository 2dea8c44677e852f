"""What the worker, and so the guard of examples/c, makes of the shared cases.
Prints "ok NAME" or "not ok NAME" for each test."""

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests"))

from workers import CASES, Worker, replay, verdict  # noqa: E402

BODIES = json.loads((CASES / "bodies" / "manifest.json").read_bytes())


def bodies_as_files(worker):
    for case in BODIES:
        was = verdict(worker, CASES / "bodies" / case["file"])
        expected = {"file": case["file"], "id": case["id"], "reason": case["reason"]}
        yield case["file"], was, expected


def bodies_as_text(worker):
    for case in BODIES:
        try:
            text = (CASES / "bodies" / case["file"]).read_bytes().decode()
        except UnicodeDecodeError:
            continue
        was = worker.ask(op="process", body=text)
        yield case["file"], (was["id"], was["reason"]), (case["id"], case["reason"])


def ids_that_a_host_passes_itself(worker):
    for case in json.loads((CASES / "ids.json").read_bytes()):
        was = worker.ask(op="process", id=case["id"])
        expected = (case["id"], None, True) if case["usable"] else (None, "unusable", False)
        yield case["why"], (was["id"], was["reason"], was["marked"]), expected
        if case["usable"]:
            again = worker.ask(op="process", id=case["id"])["decision"]
            yield f"{case['why']}, once more", again, "skip"


def sequences_of_the_conformance_manifest(worker):
    for result in replay(worker, CASES / "conformance" / "manifest.json"):
        yield result["name"], result["error"], None


def questions_of_the_store(worker):
    yield "unknown", worker.ask(op="seen", id="A"), {"seen": False}
    yield "remember", worker.ask(op="remember", id="A"), {"ok": True}
    yield "known", worker.ask(op="seen", id="A"), {"seen": True}
    yield "skip", worker.ask(op="process", body='{"meta":{"id":"A"}}')["decision"], "skip"
    yield "forget", worker.ask(op="forget", id="A"), {"ok": True}
    yield "run", worker.ask(op="process", body='{"meta":{"id":"A"}}')["decision"], "run"
    yield "no id", worker.ask(op="forget", id="")["error"], "rejected"


def a_body_over_the_limit(worker):
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(16 * 1024 * 1024 + 1)
        yield "verdict", worker.ask(op="verdict", file=file.name)["error"], "guard"
        was = worker.ask(op="process", file=file.name)
        yield "process", (was["decision"], was["error"], was["id"]), ("error", "guard", None)
    yield "the next one", worker.ask(op="process", id="A")["decision"], "run"


def what_is_unsupported_is_said(worker):
    text = '{"meta":{"id":"A"}}'
    for request in (
        {"op": "open", "store": "redis://127.0.0.1:1/0"},
        {"op": "open", "store": "memory:", "claim": True},
        {"op": "open", "store": "memory:", "retention_ms": 0},
        {"op": "process", "body": text, "step": "charge"},
        {"op": "process", "body": text, "headers": {"bq-replay-bypass": "1"}},
        {"op": "process"},
        {"op": "process", "id": "\ud800"},
        {"op": "dance"},
        {},
    ):
        yield request, worker.ask(**request).get("error"), "unsupported"


def main():
    for test in (
        bodies_as_files,
        bodies_as_text,
        ids_that_a_host_passes_itself,
        sequences_of_the_conformance_manifest,
        questions_of_the_store,
        a_body_over_the_limit,
        what_is_unsupported_is_said,
    ):
        asked = wrong = 0
        with Worker("c") as worker:
            for what, was, expected in test(worker):
                asked += 1
                if was != expected:
                    wrong += 1
                    print(f"# {what}: {expected!r} expected, was {was!r}")
        status = worker.process.returncode
        if status != 0:
            print(f"# the worker has ended with status {status}")
        print("not ok" if wrong or status or not asked else "ok", test.__name__, flush=True)


main()
