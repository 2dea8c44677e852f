"""The hosts' workers (see README.md here), started and asked; and what the
programs beside this file share."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"

# Each host, and the tools without which it cannot be built and run.
HOSTS = {
    "rust": ["cargo"],
    "python": ["python3"],
    "node": ["node", "npm"],
    "go": ["go"],
    "java": ["java", "mvn"],
    "c": ["cc", "make", "cargo"],
}

# The babelqueue package of Python, beside the hosts: it has no guard, and so is
# no host itself. Python's development has it installed.
PACKAGE = "babelqueue"

# Their workers have the store in memory alone.
WITHOUT_REDIS = {"c"}

# A store's retention here: what a killed test leaves behind does not stay.
RETENTION_MS = 600_000


def in_ci():
    return os.environ.get("CI") == "true"


def chosen_hosts(names):
    """The hosts of these names, or all there are. One whose tools are missing
    is left out, after saying so; where CI=true that is an error."""
    hosts = []
    for host in names or HOSTS:
        if host not in HOSTS:
            sys.exit(f"no host {host}: one of {', '.join(HOSTS)}")
        if host != "rust" and not worker_program(host).exists():
            if names:
                sys.exit(f"{host} has no worker: {worker_program(host)} is not there")
            continue
        missing = [tool for tool in HOSTS[host] if shutil.which(tool) is None]
        if not missing:
            hosts.append(host)
        elif in_ci() or names:
            sys.exit(f"{host} needs {' and '.join(missing)}, which is not installed")
        else:
            print(f"skipped: {host}: {' and '.join(missing)} is not installed", file=sys.stderr)
    return hosts


def worker_program(host):
    return ROOT / "host" / host / "worker"


def worker_command(host):
    """The worker's command line; what it needs is built first."""
    if host == PACKAGE:
        python = ROOT / "host" / "python"
        subprocess.run([python / "venv"], stdout=sys.stderr, check=True)
        return [python / ".venv" / "bin" / "python", ROOT / "tests" / "babelqueue_worker.py"]
    if host != "rust":
        return [worker_program(host)]
    build = ["cargo", "build", "--quiet", "--package", "guard-worker", "--message-format", "json"]
    built = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if built.returncode != 0:
        sys.exit("the Rust worker does not build")
    for line in built.stdout.decode().split("\n"):
        artifact = json.loads(line) if line else {}
        if artifact.get("executable") and artifact["target"]["name"] == "guard-worker":
            return [artifact["executable"]]
    sys.exit("cargo does not say where the Rust worker is")


class Worker:
    """One running worker. Asks and answers take turns, except between `send`
    and `receive`."""

    def __init__(self, host):
        self.host = host
        self.process = subprocess.Popen(
            worker_command(host), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def send(self, **request):
        # ASCII: a lone surrogate travels as an escape.
        self.process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the worker of {self.host} has ended by itself")
        return json.loads(line)

    def ask(self, **request):
        self.send(**request)
        return self.receive()

    def open(self, store, **settings):
        answer = self.ask(op="open", store=store, **settings)
        if answer != {"ok": True}:
            sys.exit(f"{self.host} cannot open a store: {answer}")


def bodies_in(folder):
    """The bodies of a folder in the order of their names."""
    files = [file for file in Path(folder).iterdir() if file.is_file()]
    return sorted(
        (f for f in files if f.name != "manifest.json" and not f.name.startswith(".")),
        key=lambda file: file.name,
    )


def verdict(worker, file):
    """What a host reads from a body: {"file", "id", "reason"}, and "error" if
    it could not be decided on."""
    answer = worker.ask(op="verdict", file=str(file.resolve()))
    row = {"file": file.name, "id": answer.get("id"), "reason": answer.get("reason")}
    if "error" in answer:
        row["error"] = answer["error"]
    return row


def replay(worker, manifest_file, store="memory:"):
    """Puts a manifest of the cross-SDK form through a worker. Each sequence
    has keys of its own in the store, and removes its marks at the end."""
    manifest = json.loads(Path(manifest_file).read_bytes())["idempotency"]
    if "dedup_key" in manifest:
        key = manifest["dedup_key"]
        file = Path(manifest_file).parent / key["envelope_file"]
        read = verdict(worker, file)["id"]
        expected = key["expected_key"]
        wrong = None if read == expected else f"{expected!r} expected, was {read!r}"
        yield {"name": "dedup_key", "passed": wrong is None, "error": wrong}
    for number, case in enumerate(manifest.get("sequences", {}).get("cases", [])):
        prefix = f"bq:conformance:{os.getpid()}.{number}:"
        worker.open(store, prefix=prefix, retention_ms=RETENTION_MS)
        yield sequence(worker, case)


def sequence(worker, case):
    effects, wrong, ids = 0, None, set()
    for number, delivery in enumerate(case["deliveries"], 1):
        usable = isinstance(delivery.get("meta_id"), str) and delivery["meta_id"] != ""
        if usable:
            ids.add(delivery["meta_id"])
        if usable and delivery.get("forget_before"):
            worker.ask(op="forget", id=delivery["meta_id"])
        meta = {"id": delivery["meta_id"]} if "meta_id" in delivery else {}
        body = json.dumps({"job": "urn:babel:conformance:delivered", "data": {}, "meta": meta})
        answer = worker.ask(op="process", body=body, outcome=delivery.get("outcome", "ok"))
        decision, expected = answer.get("decision", answer), delivery["expect_effect"]
        effects += decision == "run"
        if decision != expected and wrong is None:
            wrong = f"delivery {number}: {expected} expected, was {decision}"
    if effects != case["expected_effects"] and wrong is None:
        wrong = f"{case['expected_effects']} effects expected, were {effects}"
    for id in ids:
        worker.ask(op="forget", id=id)
    return {
        "name": case["name"],
        "passed": wrong is None,
        "deliveries": len(case["deliveries"]),
        "effects": effects,
        "expected_effects": case["expected_effects"],
        "error": wrong,
    }


class Redis:
    """A server of our own on a free port, and a raw client to it."""

    @staticmethod
    def start():
        """None, after saying why, where it is not installed; in CI an error."""
        program = os.environ.get("BQ_GUARD_REDIS_SERVER") or "redis-server"
        if shutil.which(program):
            return Redis(program)
        if in_ci():
            sys.exit(f"{program} is not installed, and nothing may be skipped here")
        print(f"skipped: {program} is not installed", file=sys.stderr)
        return None

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder.name, "save": ""}
        arguments = [word for key, value in settings.items() for word in (f"--{key}", str(value))]
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
        self.connection = self.connect().makefile("rwb")
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def connect(self):
        for _ in range(500):
            try:
                return socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                time.sleep(0.02)
        sys.exit("redis-server does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def command(self, *words):
        """Sends a command; integers come back as such, nil as None, all else
        as bytes."""
        encoded = [str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(encoded)]
        parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded]
        self.connection.write(b"".join(parts))
        self.connection.flush()
        line = self.connection.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self.connection.read(length + 2)[:-2]
        return int(rest) if kind == b":" else line
