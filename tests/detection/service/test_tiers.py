"""The queue and thread of one tier, without the process."""

import threading
import time
from collections.abc import Sequence
from queue import Queue
from typing import Any

import pytest
from tests.support.detection import StandIn

from gatehouse.detection.models import refuse_unknown
from gatehouse.detection.service import tiers
from gatehouse.detection.service.tiers import BATCH_TEXTS, Failure, Tier, TierJob

SOON = 10.0


class Submission:
    """A job and its results."""

    def __init__(self, *texts: str, labels: Sequence[str] = (), seconds: float = SOON) -> None:
        self._results: Queue[dict[int, Any] | Failure] = Queue()
        self.job = TierJob[Any](texts, labels, time.monotonic() + seconds, self._results.put)

    def result(self) -> list[Any] | Failure:
        """Wait for all answers and return them, or the failure."""
        answers: dict[int, Any] = {}
        while len(answers) < len(self.job.texts):
            response = self._results.get(timeout=SOON)
            if isinstance(response, str):
                return response
            answers |= response
        return [answers[index] for index in range(len(answers))]


class Gate(StandIn):
    """A model whose first batch waits until `opened` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, texts: Sequence[str], labels: Sequence[str]) -> list[Any]:
        self.entered.set()
        assert self.opened.wait(SOON)
        return [(text, tuple(labels), result) for text, result in zip(texts, self.recognize(texts), strict=True)]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def tier(gate: Gate) -> Tier[Any]:
    """A tier that is busy with a first text, so that later texts wait together."""
    made: Tier[Any] = Tier("ner", lambda: gate, queue=50, hung_after=SOON)
    made.submit(Submission("first").job)
    assert gate.entered.wait(SOON)
    return made


def test_a_model_is_loaded_on_the_first_request_only() -> None:
    loaded = []

    def load() -> Any:
        loaded.append(True)
        return lambda texts, labels: list(texts)

    tier: Tier[Any] = Tier("ner", load, queue=10, hung_after=SOON)
    assert (tier.state().phase, loaded) == ("idle", [])
    for text in ("one", "two"):
        request = Submission(text)
        tier.submit(request.job)
        assert request.result() == [text]
    assert (tier.state().phase, loaded) == ("loaded", [True])


def test_a_model_can_be_loaded_before_it_is_needed(gate: Gate) -> None:
    tier: Tier[Any] = Tier("ner", lambda: gate, queue=10, hung_after=SOON)
    tier.load()
    deadline = time.monotonic() + SOON
    while tier.state().phase != "loaded" and time.monotonic() < deadline:
        time.sleep(0.005)
    assert tier.state().phase == "loaded"


def test_waiting_texts_are_read_in_one_batch_by_length(gate: Gate, tier: Tier[Any]) -> None:
    requests = [Submission("Cc" * 9), Submission("B", "Aaaa")]
    for question in requests:
        tier.submit(question.job)
    gate.opened.set()
    assert [[answer[0] for answer in question.result()] for question in requests] == [["Cc" * 9], ["B", "Aaaa"]]
    assert gate.batches == [["first"], ["B", "Aaaa", "Cc" * 9]]


def test_a_batch_is_bounded_in_texts_and_in_code_points(
    gate: Gate, tier: Tier[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "BATCH_CODE_POINTS", 30)
    requests = [Submission(*"a" * (BATCH_TEXTS + 3)), Submission("b" * 25, "b" * 25, "b" * 40)]
    for question in requests:
        tier.submit(question.job)
    gate.opened.set()
    for question in requests:
        assert len(question.result()) == len(question.job.texts)
    assert all(len(batch) <= BATCH_TEXTS for batch in gate.batches)
    assert all(len("".join(batch)) <= 30 or len(batch) == 1 for batch in gate.batches)


def test_a_long_request_does_not_keep_others_waiting_for_all_of_it(gate: Gate, tier: Tier[Any]) -> None:
    long, short = Submission(*(f"long {number}" for number in range(40))), Submission("short")
    tier.submit(long.job)
    tier.submit(short.job)
    gate.opened.set()
    short.result()
    long.result()
    assert "short" in gate.batches[1]


def test_many_long_requests_take_turns(gate: Gate, tier: Tier[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "BATCH_TEXTS", 2)
    requests = [Submission(*[name] * 3) for name in "abcd"]
    for question in requests:
        tier.submit(question.job)
    gate.opened.set()
    for question in requests:
        question.result()
    assert gate.batches[1:] == [["a", "b"], ["c", "d"]] * 3


def test_texts_of_one_batch_are_asked_for_the_same_labels(gate: Gate, tier: Tier[Any]) -> None:
    requests = [Submission("a", labels="x"), Submission("b", labels="y"), Submission("c", labels="x")]
    for question in requests:
        tier.submit(question.job)
    gate.opened.set()
    assert [question.result()[0][:2] for question in requests] == [("a", ("x",)), ("b", ("y",)), ("c", ("x",))]
    assert gate.batches[1:] == [["a", "c"], ["b"]]


def test_texts_of_abandoned_requests_are_not_read(gate: Gate, tier: Tier[Any]) -> None:
    late, second_job = Submission("late", "later", seconds=0.01), Submission("other")
    tier.submit(late.job)
    tier.submit(second_job.job)
    time.sleep(0.02)
    gate.opened.set()
    second_job.result()
    assert late.result() == "timeout"
    assert gate.batches == [["first"], ["other"]]
    assert tier.state().waiting == 0


def test_texts_beyond_the_size_of_the_queue_are_refused_at_once(gate: Gate, tier: Tier[Any]) -> None:
    fits, too_much = Submission(*"a" * 49), Submission("b")
    tier.submit(fits.job)
    tier.submit(too_much.job)
    assert too_much.result() == "overloaded"
    assert tier.state().waiting == 50
    gate.opened.set()
    assert len(fits.result()) == 49
    assert tier.state().waiting == 0


def test_an_abandoned_request_takes_no_room_in_the_queue(gate: Gate, tier: Tier[Any]) -> None:
    late, next_one = Submission(*"a" * 49, seconds=0.01), Submission(*"b" * 49)
    tier.submit(late.job)
    time.sleep(0.02)
    tier.submit(next_one.job)
    assert late.result() == "timeout"
    gate.opened.set()
    assert len(next_one.result()) == 49


def test_a_request_longer_than_the_queue_is_accepted_if_none_waits(gate: Gate) -> None:
    gate.opened.set()
    tier: Tier[Any] = Tier("ner", lambda: gate, queue=2, hung_after=SOON)
    request = Submission(*"abc")
    tier.submit(request.job)
    assert len(request.result()) == 3


@pytest.mark.parametrize("bad", ["raise", "panic"])
def test_a_text_that_a_model_fails_on_does_not_affect_other_requests(gate: Gate, tier: Tier[Any], bad: str) -> None:
    requests = [Submission("Anna"), Submission(bad, "Bob"), Submission("Carl")]
    for question in requests:
        tier.submit(question.job)
    gate.opened.set()
    results = [question.result() for question in requests]
    assert results[1] == "crashed"
    assert [result[0][0] for result in (results[0], results[2])] == ["Anna", "Carl"]
    assert tier.state().waiting == 0


def test_the_log_does_not_contain_a_text_that_a_model_fails_on(capsys: pytest.CaptureFixture[str]) -> None:
    tier: Tier[Any] = Tier("ner", lambda: lambda texts, labels: StandIn().recognize(texts), queue=9, hung_after=SOON)
    request = Submission("raise 4111111111111111")
    tier.submit(request.job)
    assert request.result() == "crashed"
    output = capsys.readouterr()
    assert "text_failed" in output.out + output.err
    assert "41111111" not in output.out + output.err


def test_a_request_with_an_unknown_label_fails_and_the_others_are_answered(gate: Gate) -> None:
    def model(texts: Sequence[str], labels: Sequence[str]) -> list[Any]:
        refuse_unknown(labels, ["x"])
        return list(gate(texts, labels))

    tier: Tier[Any] = Tier("ner", lambda: model, queue=9, hung_after=SOON)
    gate.opened.set()
    unknown_label_job, known_label_job = Submission("a", "b", labels=("y",)), Submission("c", labels=("x",))
    for item in (unknown_label_job, known_label_job):
        tier.submit(item.job)
    assert unknown_label_job.result() == "unavailable"
    assert known_label_job.result()[0][:2] == ("c", ("x",))
    assert tier.state().waiting == 0


def test_a_model_that_answers_too_few_texts_fails() -> None:
    tier: Tier[Any] = Tier("ner", lambda: lambda texts, labels: [], queue=9, hung_after=SOON)
    request = Submission("a", "b")
    tier.submit(request.job)
    assert request.result() == "crashed"


def test_a_model_that_cannot_be_loaded_is_tried_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def load() -> Any:
        tries.append(True)
        if len(tries) == 1:
            raise ValueError("no such file")
        return lambda texts, labels: list(texts)

    tier: Tier[Any] = Tier("ner", load, queue=9, hung_after=SOON)
    for _ in range(3):
        request = Submission("a")
        tier.submit(request.job)
        assert request.result() == "unavailable"
    assert tier.state() == tiers.TierState("unusable", 0, "ValueError: no such file")
    assert len(tries) == 1
    monkeypatch.setattr(tier, "_retry_at", 0.0)
    request = Submission("a")
    tier.submit(request.job)
    assert request.result() == ["a"]
    assert tier.state().phase == "loaded"
