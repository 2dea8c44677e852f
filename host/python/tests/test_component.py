"""Ordinary tooling runs the component itself: the package's own component API."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from conftest import CASES, REPOSITORY, envelope
from wasmtime import Config, Engine, Store
from wasmtime.component import Component, Linker, Variant

from babelqueue_guard import FailOpen, Guard, Identity, MemoryStore

ARTIFACTS = REPOSITORY / "guest" / "artifacts"
PACKAGE = "babelqueue:guard"
BODIES = json.loads((CASES / "bodies" / "manifest.json").read_text("utf-8"))


class Linked:
    """The component, linked straight to a set of ids: one store's worth of Python."""

    def __init__(self, artifact: Path) -> None:
        self.marks: set[str] = set()
        self.engine = Engine(Config())
        self.store = Store(self.engine)
        linker = Linker(self.engine)
        with linker.root() as root, root.add_instance(f"{PACKAGE}/store@0.1.0") as store:
            store.add_func("seen", self.seen)
            store.add_func("remember", self.remember)
            store.add_func("forget", self.forget)
        component = Component.from_file(self.engine, str(artifact))
        self.instance = linker.instantiate(self.store, component)
        index = self.instance.get_export_index(self.store, f"{PACKAGE}/guard@0.1.0")
        assert index is not None
        self.guard = index

    # The package tells the cases of a variant by their Python types, where these differ:
    # so `ok` of a `result<bool, store-error>` is the bool alone.

    def seen(self, _: Store, id: str) -> bool | Variant:
        if id == "unreachable":
            return Variant("unavailable", "the store is down")
        return id in self.marks

    def remember(self, _: Store, id: str) -> None:
        self.marks.add(id)

    def forget(self, _: Store, id: str) -> None:
        self.marks.discard(id)

    def call(self, name: str, *arguments: Any) -> Any:
        index = self.instance.get_export_index(self.store, name, self.guard)
        assert index is not None
        function = self.instance.get_func(self.store, index)
        assert function is not None
        return function(self.store, *arguments)


@pytest.fixture(scope="module")
def linked() -> Linked:
    return Linked(ARTIFACTS / "plain.component.wasm")


def verdict(decided: Variant) -> Identity:
    """The id or the reason of a decision by a store that has seen nothing."""
    assert decided.tag == "ok"
    ticket = decided.payload
    assert isinstance(ticket, Variant)
    if ticket.tag == "open":
        return Identity(None, FailOpen(ticket.payload))
    assert ticket.tag == "seen"
    return Identity(ticket.payload, None)


def test_every_body_gets_the_verdict_that_the_guard_gives(linked: Linked) -> None:
    guard = Guard(MemoryStore())
    linked.marks.clear()
    for case in BODIES:
        body = (CASES / "bodies" / case["file"]).read_bytes()
        if len(body) > 20_000:
            # The component API boxes each byte.
            continue
        assert verdict(linked.call("decide", body)) == guard.identify(body), case["file"]
        try:
            text = body.decode()
        except UnicodeDecodeError:
            continue
        assert verdict(linked.call("decide-text", text)) == guard.identify(body), case["file"]


def test_a_store_that_is_linked_straight_to_the_component(linked: Linked) -> None:
    linked.marks.clear()
    decided = linked.call("decide-text", envelope("a").decode())
    ticket = decided.payload
    assert linked.call("settle", ticket, "failed") == "nothing"
    assert linked.marks == set()
    assert linked.call("settle", ticket, "succeeded") == "marked"
    assert linked.marks == {"a"}
    # A decision's `skip` is its id alone.
    assert linked.call("decide-id", "a") == Variant("ok", "a")
    linked.call("forget", "a")
    assert linked.marks == set()
    assert linked.call("decide-id", "unreachable") == Variant(
        "err", Variant("unavailable", "the store is down")
    )


def test_the_core_in_this_package_is_the_one_of_the_repository() -> None:
    package = resources.files("babelqueue_guard") / "artifacts"
    for world in ("plain", "claiming"):
        name = f"{world}.core.wasm"
        assert (package / name).read_bytes() == (ARTIFACTS / name).read_bytes()
    for name in ("renew.lua", "release.lua"):
        original = REPOSITORY / "stores" / "redis" / name
        assert (package / name).read_bytes() == original.read_bytes()
