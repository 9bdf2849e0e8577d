"""A tier: the queue of a model, and the single thread that runs the model.

The model reads texts in batches. The waiting requests take turns in adding texts to the next batch. A long prompt
therefore delays other requests by one batch, and not by all of its texts. Texts of cancelled requests are not read.
"""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import structlog

from gatehouse.detection.findings import Finding
from gatehouse.detection.models import Classifier, LabelsUnknown, Recognizer, TierName
from gatehouse.foundation.settings import Settings

log = structlog.get_logger(__name__)

Answer = TypeVar("Answer")
Failure: TypeAlias = Literal["timeout", "overloaded", "crashed", "unavailable"]
Phase: TypeAlias = Literal["idle", "loading", "loaded", "unusable"]
#: A function that takes texts and labels and returns an answer for each text.
Model: TypeAlias = Callable[[Sequence[str], Sequence[str]], Sequence[Answer]]
#: A function that returns a context manager for one use of a model. It takes the tier and the timeout in seconds.
Watch: TypeAlias = Callable[[TierName, float], AbstractContextManager[None]]

#: Maximum texts and maximum code points of a batch, which then takes about 0.1 s. A longer text is read alone.
BATCH_TEXTS: Final = 16
BATCH_CODE_POINTS: Final = 4096
#: Timeout for loading a model. It is long, because models of other vendors need large libraries.
LOAD_SECONDS: Final = 120.0
#: Seconds after which a model that could not be loaded is tried again.
RETRY_SECONDS: Final = 30.0


class TierModels(NamedTuple):
    """Functions that load the models. Each is called in the thread of its tier, when the model is first needed."""

    recognizer: Callable[[], Recognizer]
    classifier: Callable[[], Classifier]


def models(settings: Settings) -> TierModels:
    """Return functions that load the models at `NER_MODEL_PATH` and `SEMANTIC_MODEL_PATH`, or the embedded models."""

    # Numeric libraries are imported at first use, so that an idle process needs little memory.
    def recognizer() -> Recognizer:
        from gatehouse.detection.entities import open_recognizer  # noqa: PLC0415

        return open_recognizer(settings.ner_model_path)

    def classifier() -> Classifier:
        from gatehouse.detection.semantic import open_classifier  # noqa: PLC0415

        return open_classifier(settings.semantic_model_path)

    return TierModels(recognizer, classifier)


class TierState(msgspec.Struct, frozen=True):
    """The state of a tier. `waiting` is the number of waiting texts. `detail` is the reason why the model could not be
    loaded."""

    phase: Phase
    waiting: int = 0
    detail: str | None = None


class BadModel(Exception):
    def __init__(self, tier: TierName, requested: int, answered: int) -> None:
        super().__init__(f"the model of {tier} answered {answered} of {requested} texts")


class TierJob(Generic[Answer]):
    """The texts of one request. `deadline` is monotonic time in seconds. `on_result` gets the answers as they arrive,
    by the index of their texts, or one failure. It is called from any thread, and must not block."""

    __slots__ = ("__weakref__", "_on_result", "deadline", "labels", "next", "over", "texts")

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        deadline: float,
        on_result: Callable[[dict[int, Answer] | Failure], None],
    ) -> None:
        self.texts = texts
        self.labels = tuple(labels)
        self.deadline = deadline
        #: index of the first text that is not yet in a batch
        self.next = 0
        self.over = False
        self._on_result = on_result

    def answer(self, answers: dict[int, Answer]) -> None:
        if not self.over:
            self._on_result(answers)

    def cancel(self) -> None:
        """Cancel the texts that are not yet in a batch."""
        self.over = True

    def fail(self, failure: Failure) -> None:
        if not self.over:
            self.over = True
            self._on_result(failure)


class Tier(Generic[Answer]):
    def __init__(
        self,
        name: TierName,
        load: Callable[[], Model[Answer]],
        *,
        queue: int,
        hung_after: float,
        watch: Watch = lambda name, seconds: nullcontext(),
    ) -> None:
        """`queue` is the maximum number of waiting texts. `hung_after` is the timeout of a batch in seconds."""
        self._name = name
        self._load = load
        self._queue = queue
        self._hung_after = hung_after
        self._watch = watch
        self._model: Model[Answer] | None = None
        self._phase: Phase = "idle"
        self._detail: str | None = None
        self._retry_at = 0.0
        #: the lock for the attributes below
        self._changed = threading.Condition()
        self._jobs: deque[TierJob[Answer]] = deque()
        self._waiting = 0
        self._load_requested = False
        self._thread: threading.Thread | None = None

    def state(self) -> TierState:
        return TierState(self._phase, self._waiting, self._detail)

    def submit(self, job: TierJob[Answer]) -> None:
        """Add a request to the queue, without blocking. If no text waits, a request is accepted with any number of
        texts."""
        late: list[TierJob[Answer]] = []
        with self._changed:
            if not self._fits(job):
                late = self._drop_late()
            fits = self._fits(job)
            if fits:
                self._jobs.append(job)
                self._waiting += len(job.texts)
                self._wake()
        for late_job in late:
            late_job.fail("timeout")
        if not fits:
            job.fail("overloaded")

    def load(self) -> None:
        """Start loading the model before a request needs it. Returns at once."""
        with self._changed:
            self._load_requested = True
            self._wake()

    def _fits(self, job: TierJob[Answer]) -> bool:
        return not self._waiting or self._waiting + len(job.texts) <= self._queue

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._jobs or self._load_requested):
                    self._changed.wait()
                self._load_requested = False
            model = self._loaded()
            if model is None:
                self._fail_all("unavailable")
                continue
            batch = self._batch()
            if batch:
                self._read(model, batch)

    def _loaded(self) -> Model[Answer] | None:
        if self._model is not None or time.monotonic() < self._retry_at:
            return self._model
        self._phase = "loading"
        try:
            with self._watch(self._name, LOAD_SECONDS):
                self._model = self._load()
        # A library in Rust may raise a `BaseException`, which must not end the thread.
        except BaseException as error:
            self._phase, self._detail = "unusable", f"{type(error).__name__}: {error}"
            self._retry_at = time.monotonic() + RETRY_SECONDS
            log.exception("detection.model_unusable", tier=self._name)
        else:
            self._phase, self._detail = "loaded", None
        return self._model

    def _batch(self) -> list[tuple[TierJob[Answer], int]]:
        """Return the next batch, sorted by the length of the texts. All texts of a batch have the same labels."""
        batch: list[tuple[TierJob[Answer], int]] = []
        with self._changed:
            late = self._drop_late()
            if self._jobs:
                size = 0
                takers = deque(job for job in self._jobs if job.labels == self._jobs[0].labels)
                while takers and len(batch) < BATCH_TEXTS:
                    job = takers.popleft()
                    size += len(job.texts[job.next])
                    if batch and size > BATCH_CODE_POINTS:
                        break
                    batch.append((job, job.next))
                    job.next += 1
                    if job.next < len(job.texts):
                        takers.append(job)
                # Requests with a text in this batch move to the end of the queue.
                served = dict.fromkeys(job for job, _ in batch)
                rest = [job for job in self._jobs if job not in served]
                self._jobs = deque([*rest, *(job for job in served if job.next < len(job.texts))])
        for job in late:
            job.fail("timeout")
        return sorted(batch, key=lambda place: len(place[0].texts[place[1]]))

    def _drop_late(self) -> list[TierJob[Answer]]:
        now = time.monotonic()
        late = [job for job in self._jobs if job.deadline < now or job.over]
        if late:
            dropped = set(late)
            self._jobs = deque(job for job in self._jobs if job not in dropped)
            # Texts that are already in a batch are counted in `_read`.
            self._waiting -= sum(len(job.texts) - job.next for job in late)
        return late

    def _fail_all(self, failure: Failure) -> None:
        with self._changed:
            failed, self._jobs = self._jobs, deque()
            self._waiting -= sum(len(job.texts) - job.next for job in failed)
        for job in failed:
            job.fail(failure)

    def _read(self, model: Model[Answer], batch: list[tuple[TierJob[Answer], int]]) -> None:
        try:
            answers = self._ask(model, batch)
        except LabelsUnknown as error:
            log.error("detection.labels_unknown", tier=self._name, error=str(error))  # noqa: TRY400 - needs no stack
            self._no_longer_wait(len(batch))
            for job in dict.fromkeys(job for job, _ in batch):
                job.fail("unavailable")
        except BaseException as error:
            if len(batch) > 1:
                # One faulty text must not make the other texts fail, so each text is read alone.
                for place in batch:
                    self._read(model, [place])
                return
            self._no_longer_wait(1)
            # Only the location in the code is logged, because the error message may quote the text.
            at = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{at.name}:{at.lineno}"
            log.error("detection.text_failed", tier=self._name, error=type(error).__name__, at=where)  # noqa: TRY400
            batch[0][0].fail("crashed")
        else:
            self._no_longer_wait(len(batch))
            answers_by_job: dict[TierJob[Answer], dict[int, Answer]] = {}
            for (job, index), answer in zip(batch, answers, strict=True):
                answers_by_job.setdefault(job, {})[index] = answer
            for job, job_answers in answers_by_job.items():
                job.answer(job_answers)

    def _ask(self, model: Model[Answer], batch: list[tuple[TierJob[Answer], int]]) -> Sequence[Answer]:
        with self._watch(self._name, self._hung_after):
            answers = model([job.texts[index] for job, index in batch], batch[0][0].labels)
            if len(answers) != len(batch):
                raise BadModel(self._name, len(batch), len(answers))
        return answers

    def _no_longer_wait(self, texts: int) -> None:
        with self._changed:
            self._waiting -= texts


class Tiers:
    """The two tiers of a process."""

    def __init__(self, load: TierModels, *, queue: int, hung_after: float, watch: Watch | None = None) -> None:
        watching = {} if watch is None else {"watch": watch}
        self.entities: Tier[list[Finding]] = Tier(
            "ner", lambda: _entities(load.recognizer()), queue=queue, hung_after=hung_after, **watching
        )
        self.semantic: Tier[dict[str, float]] = Tier(
            "llm", lambda: load.classifier().classify, queue=queue, hung_after=hung_after, **watching
        )

    def states(self) -> dict[TierName, TierState]:
        return {"ner": self.entities.state(), "llm": self.semantic.state()}


def _entities(recognizer: Recognizer) -> Model[list[Finding]]:
    return recognizer.recognize
