"""The seen-set guard for threads: what it asks, runs, marks and raises (sections 1, 2, 6, 7)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from conftest import envelope

from babelqueue_guard import (
    Decision,
    Delivery,
    FailOpen,
    Guard,
    GuardError,
    KnownId,
    MemoryStore,
    Parked,
    Result,
    Settled,
    StoreRejected,
    StoreUnavailable,
    current_delivery,
)


class Recorder:
    """A store of three plain methods that notes what it is asked, and fails as told."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[tuple[str, str]] = []
        self.marks: set[str] = set()
        self.answers = answers

    def _answer(self, question: str, id: str, otherwise: Any) -> Any:
        self.asked.append((question, id))
        answer = self.answers.get(question, otherwise)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def seen(self, id: str) -> Any:
        return self._answer("seen", id, id in self.marks)

    def remember(self, id: str) -> None:
        self._answer("remember", id, None)
        self.marks.add(id)

    def forget(self, id: str) -> None:
        self._answer("forget", id, None)
        self.marks.discard(id)


def never(delivery: object) -> None:
    pytest.fail("the handler was called")


class NotAnException(BaseException):
    """Like KeyboardInterrupt, but nobody else's."""


def test_success_is_marked_and_its_copy_skipped() -> None:
    store = Recorder()
    guard = Guard(store)
    result = guard.process(envelope("a"), lambda delivery: (delivery.id, delivery.body))
    assert result == Result("ran", "a", value=("a", envelope("a")), settled=Settled.MARKED)
    assert result.ran
    assert result.marked
    copy = guard.process(envelope("a"), never)
    assert copy == Result("skipped", "a")
    assert copy.skipped
    assert not copy.marked
    assert store.asked == [("seen", "a"), ("remember", "a"), ("seen", "a")]


def test_failure_passes_unchanged_and_marks_nothing() -> None:
    store = Recorder()
    guard = Guard(store)
    # A generator's and an iterator's signals are exceptions like any other here.
    for raised in (ZeroDivisionError("0"), StopIteration(1), NotAnException(), SystemExit(3)):

        def handler(delivery: Delivery, error: BaseException = raised) -> None:
            raise error

        with pytest.raises(type(raised)) as caught:
            guard.process(envelope(), handler)
        assert caught.value is raised
    assert store.marks == set()
    assert guard.process(envelope(), lambda delivery: 1).ran


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", FailOpen.MALFORMED),
        ("[]", FailOpen.MALFORMED),
        ("{}", FailOpen.ABSENT),
        ('{"meta":{"id":7}}', FailOpen.UNUSABLE),
        (KnownId(""), FailOpen.UNUSABLE),
        (KnownId("a\0"), FailOpen.UNUSABLE),
        (KnownId("\ud83d"), FailOpen.UNUSABLE),
        (KnownId("x" * 2049), FailOpen.UNUSABLE),
    ],
)
def test_without_a_usable_id_it_runs_and_asks_nothing(body: Any, reason: FailOpen) -> None:
    store = Recorder()
    guard = Guard(store)
    for _ in range(2):
        result = guard.process(body, lambda delivery: (delivery.id, delivery.reason))
        assert result == Result("ran", None, reason, value=(None, reason))
    assert store.asked == []


def test_the_id_is_kept_as_it_is() -> None:
    guard = Guard(MemoryStore())
    ids = ["a", "A", " a", "a ", "é", "e\u0301", "\ufffd", "\ufeffa", "7", "07", "x" * 2048, " "]
    for id in ids:
        assert guard.process(KnownId(id), lambda delivery: delivery.id).value == id
    for id in ids:
        assert guard.process(KnownId(id), never).skipped


def test_what_the_guard_raises_of_a_failing_store() -> None:
    unavailable, rejected = StoreUnavailable("down"), StoreRejected("no such table")
    for error in (unavailable, rejected):
        guard = Guard(Recorder(seen=error))
        with pytest.raises(type(error)) as caught:
            guard.process(envelope(), never)
        assert caught.value is error
        assert caught.value.__cause__ is None
    cause = OSError("broken pipe")
    with pytest.raises(StoreUnavailable, match=r"Recorder\.seen failed: OSError: broken") as other:
        Guard(Recorder(seen=cause)).process(envelope(), never)
    assert other.value.__cause__ is cause


def test_what_is_no_exception_passes_through_the_guard() -> None:
    for raised in (NotAnException(), KeyboardInterrupt(), GeneratorExit()):
        store = Recorder(seen=raised)
        guard = Guard(store)
        with pytest.raises(type(raised)):
            guard.process(envelope(), never)
        store.answers.clear()
        assert guard.process(envelope(), lambda delivery: 1).ran, "the guard stays usable"


@pytest.mark.parametrize("answer", [None, "yes", 2, 1.0, object(), [True]])
def test_an_answer_that_is_none_is_not_guessed_at(answer: Any) -> None:
    with pytest.raises(StoreRejected, match="must answer True or False"):
        Guard(Recorder(seen=answer)).process(envelope(), never)


def test_an_answer_of_zero_or_one_will_do() -> None:
    assert Guard(Recorder(seen=1)).process(envelope(), never).skipped
    assert Guard(Recorder(seen=0)).process(envelope(), lambda delivery: 1).ran


def test_an_asynchronous_store_is_refused() -> None:
    class Asynchronous(Recorder):
        async def seen(self, id: str) -> bool:
            return False

    with pytest.raises(TypeError, match=r"Asynchronous\.seen is asynchronous.*AsyncGuard"):
        Guard(Asynchronous())

    class Hidden(Recorder):
        def seen(self, id: str) -> Any:
            async def answer() -> bool:
                return False

            return answer()

    with pytest.raises(StoreRejected, match="needs an AsyncGuard"):
        Guard(Hidden()).process(envelope(), never)


@pytest.mark.parametrize("claim", [False, True])
def test_an_async_handler_is_refused_and_nothing_is_marked(claim: bool) -> None:
    store = MemoryStore()
    guard = Guard(store, claim=claim)

    async def handler(delivery: Delivery) -> None:
        pytest.fail("it was awaited")

    with pytest.raises(TypeError, match=r"handler.* is async: it needs an AsyncGuard"):
        guard.process(envelope(), handler)
    assert not store.seen("order-1")
    assert guard.process(envelope(), lambda delivery: 1).marked


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(TypeError, match="object lacks seen, remember, forget"):
        Guard(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Recorder lacks claim, renew, complete, release"):
        Guard(Recorder(), claim=True)


@pytest.mark.parametrize(
    "error", [StoreUnavailable("down"), StoreRejected("no"), OSError("gone"), TypeError("x")]
)
def test_a_mark_that_fails_after_success_is_reported_not_raised(error: Exception) -> None:
    store = Recorder(remember=error)
    result = Guard(store).process(envelope("a"), lambda delivery: 5)
    assert (result.status, result.value, result.marked) == ("ran", 5, False)
    assert isinstance(result.mark_error, StoreUnavailable | StoreRejected)
    assert error in (result.mark_error, result.mark_error.__cause__)


def test_forget_lets_a_replay_run() -> None:
    guard = Guard(MemoryStore())
    guard.process(envelope("a"), lambda delivery: 1)
    guard.forget("a")
    guard.forget("never seen")
    assert guard.process(envelope("a"), lambda delivery: 1).ran
    for id in ("", "a\0", "\ud800", "x" * 2049):
        with pytest.raises(StoreRejected, match="not usable as an id"):
            guard.forget(id)


def test_a_replay_is_told_by_its_header_which_turns_no_skip_into_a_run() -> None:
    guard = Guard(MemoryStore())
    headers = {"bq-replay-bypass": "1"}
    assert guard.process(envelope(), lambda d: d.replay, headers={"other": "x"}).value is False
    assert guard.process(envelope(), never, headers=headers).skipped
    guard.forget("order-1")
    assert guard.process(envelope(), lambda d: d.replay, headers=headers).value is True


def test_the_limit_of_a_body() -> None:
    guard = Guard(MemoryStore(), max_body=100)
    body = b'{"meta":{"id":"a"},"x":"' + b"y" * 74 + b'"}'
    assert len(body) == 100
    assert guard.process(body, lambda delivery: 1).id == "a"
    for over in (body + b" ", bytearray(body + b" "), body.decode() + " ", KnownId("x" * 101)):
        with pytest.raises(GuardError, match="101 bytes is over the limit of 100"):
            guard.process(over, never)
    assert guard.process(body, never).skipped
    for wrong in (0, -1, 1.5, True, "1", float("nan"), 2**40):
        with pytest.raises(ValueError, match="max_body must be a whole number of bytes"):
            Guard(MemoryStore(), max_body=wrong)  # type: ignore[arg-type]


def test_a_body_of_the_full_sixteen_mebibytes() -> None:
    guard = Guard(MemoryStore())
    frame = b'{"x":"%s","meta":{"id":"big"}}'
    body = frame % (b"y" * (16 * 1024 * 1024 - len(frame) + 2))
    assert guard.process(body, lambda delivery: 1).id == "big"
    with pytest.raises(GuardError, match="over the limit"):
        guard.process(body + b" ", never)
    assert guard.process(body, never).skipped


def test_the_halves_of_process() -> None:
    guard = Guard(MemoryStore())
    decision = guard.decide(envelope("a"))
    assert decision == Decision("run", "a")
    assert guard.settle(decision, "failed") is Settled.NOTHING
    assert guard.decide(envelope("a")) == decision
    assert guard.settle(decision, "succeeded") is Settled.MARKED
    assert guard.settle(decision, "succeeded") is Settled.MARKED, "twice is harmless"
    assert guard.decide(envelope("a")) == Decision("skip", "a")
    with pytest.raises(ValueError, match="not one to skip"):
        guard.settle(guard.decide(envelope("a")), "succeeded")
    with pytest.raises(StoreRejected, match="not usable"):
        guard.settle(Decision("run", "a\0b"), "succeeded")


def test_once_runs_a_step_on_one_delivery_only() -> None:
    guard = Guard(MemoryStore())
    answers = []

    def handler(delivery: Delivery) -> None:
        answers.append([delivery.once("count"), delivery.once("mail"), delivery.once("count")])
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            guard.process(envelope("a"), handler)
    assert answers == [[True, True, False], [False, False, False]]
    with pytest.raises(ZeroDivisionError):
        guard.process(envelope("b"), handler)
    assert answers[2] == [True, True, False], "another id has steps of its own"


def test_once_without_an_id_fails_open() -> None:
    guard = Guard(Recorder())
    assert guard.process("{}", lambda d: [d.once("x"), d.once("x")]).value == [True, True]


@pytest.mark.parametrize("step", ["", "A", "a-b", "a" * 41, "a\0", "é", "\ud800", "a:b"])
def test_once_takes_names_only(step: str) -> None:
    guard = Guard(MemoryStore())
    with pytest.raises(StoreRejected, match="a step's name"):
        guard.process(envelope(), lambda delivery: delivery.once(step))


def test_once_needs_a_store_that_can() -> None:
    with pytest.raises(StoreRejected, match="Recorder lacks set_once"):
        Guard(Recorder()).process(envelope(), lambda delivery: delivery.once("x"))


def test_a_handler_may_call_the_guard() -> None:
    guard = Guard(MemoryStore())

    def outer(delivery: Delivery) -> Any:
        inner = guard.process(envelope("inner"), lambda d: guard.identify(envelope("third")).id)
        return delivery.id, inner.id, inner.value

    assert guard.process(envelope("outer"), outer).value == ("outer", "inner", "third")


def test_a_store_may_call_the_guard() -> None:
    class Nested(Recorder):
        def seen(self, id: str) -> Any:
            if not id.endswith("!"):
                assert guard.process(envelope(id + "!"), lambda d: d.id).value == id + "!"
            return super().seen(id)

    store = Nested()
    guard = Guard(store)
    for n in range(20):
        assert guard.process(envelope(f"id-{n}"), lambda delivery: delivery.id).value == f"id-{n}"
    assert len(store.marks) == 40


def test_many_threads_share_a_guard() -> None:
    guard = Guard(MemoryStore())
    wrong: list[str] = []

    def work(thread: int) -> None:
        for n in range(500):
            id = f"{thread}-{n}-" + "x" * (n % 50)
            result = guard.process(envelope(id), lambda delivery: delivery.id)
            if result.value != id or not guard.process(envelope(id), never).skipped:
                wrong.append(id)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class TestWrap:
    def test_a_handler_of_a_body(self) -> None:
        guard = Guard(MemoryStore())

        @guard.wrap
        def handle(body: bytes, extra: int = 0) -> tuple[bytes, int]:
            "What it is for."
            return body, extra

        assert handle(envelope(), extra=5) == (envelope(), 5)
        assert handle(envelope()) is None
        assert handle.__name__ == "handle"
        assert handle.__doc__ == "What it is for."

    def test_a_handler_that_finds_its_delivery_elsewhere(self) -> None:
        guard = Guard(MemoryStore())

        class Message:
            def __init__(self, id: str) -> None:
                self.properties = {"message_id": id}
                self.headers = {"bq-replay-bypass": "1"}

        @guard.wrap(
            delivery=lambda message: KnownId(message.properties["message_id"]),
            headers=lambda message: message.headers,
        )
        def handle(message: Message) -> tuple[str | None, bool]:
            delivery = current_delivery()
            assert delivery is not None
            return delivery.id, delivery.replay

        assert handle(Message("a")) == ("a", True)
        assert handle(Message("a")) is None
        assert current_delivery() is None

    def test_what_has_no_delivery_is_an_error(self) -> None:
        handle = Guard(MemoryStore()).wrap(never)
        with pytest.raises(TypeError, match="tell wrap where the delivery is"):
            handle(7)

    def test_an_async_handler_needs_the_other_guard(self) -> None:
        async def handle(body: bytes) -> None: ...

        with pytest.raises(TypeError, match="wrap it with an AsyncGuard"):
            Guard(MemoryStore()).wrap(handle)

    def test_a_parked_delivery_is_an_exception(self) -> None:
        guard = Guard(MemoryStore(), claim=True)

        @guard.wrap
        def handle(body: bytes) -> None:
            with pytest.raises(Parked, match="is at work") as parked:
                handle(body)
            assert parked.value.id == "order-1"
            assert 0 < (parked.value.left_ms or 0) <= 60_000

        handle(envelope())
