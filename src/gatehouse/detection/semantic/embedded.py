"""The embedded classifier. It uses MiniLM embeddings with trained heads, and zero-shot classification for other
labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from gatehouse.detection.semantic import ngrams, windows
from gatehouse.detection.semantic.backbone import Backbone, Ids, Vector
from gatehouse.detection.semantic.heads import ScoringHead, sigmoid, softmax
from gatehouse.detection.semantic.zero_shot import Curve, ZeroShot, known_labels

DATA: Final = Path(__file__).parent / "data"
#: The class of the topics head for texts without a topic. It is not a label.
OUT_OF_SCOPE: Final = "out_of_scope"


class Part(msgspec.Struct, frozen=True):
    """A window of a text: its token ids and their embedding."""

    ids: Ids
    vector: Vector


class ReadWindows(msgspec.Struct, frozen=True):
    windows: list[Part]
    #: the most suspicious passage; None for a short text
    passage: Part | None


class EmbeddedClassifier:
    """Scores texts with the embedded model. The score of a text for a label is the highest score of its windows, except
    for jailbreaks. It does not depend on the other texts of a request."""

    def __init__(self, folder: Path = DATA, heads: Path | None = None, backbone: Backbone | None = None) -> None:
        """`heads` is a file that replaces the heads of the folder. `backbone` is a backbone that is already loaded."""
        self._backbone = backbone or Backbone(folder)
        # Pickled objects are not allowed, because a data file must not be able to run code.
        with np.load(heads or folder / "heads.npz", allow_pickle=False) as arrays:
            self._attacks = ScoringHead(arrays, "attacks")
            self._topics = ScoringHead(arrays, "topics")
            self._domains = tuple(map(str, arrays["topics.domains"]))
            self._domain_of = arrays["topics.domain_of"]
            self.curves = (
                Curve(*map(float, arrays["zero_shot.by_examples"])),
                Curve(*map(float, arrays["zero_shot.by_words"])),
            )
            background = arrays["zero_shot.background"].astype(np.float32)
            examples = {
                label: arrays[f"zero_shot.examples.{label}"].astype(np.float32) for label in known_labels(folder)
            }
        self._zero_shot = ZeroShot(self.embed, examples, background, *self.curves)

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self._attacks.classes, *(domain for domain in self._domains if domain != OUT_OF_SCOPE))

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        return [self._scores(self.read(text), labels) if text.strip() else dict.fromkeys(labels, 0.0) for text in texts]

    def embed(self, text: str) -> Vector:
        """Return the vector of the first window of a text. A short text is one window."""
        return self._backbone.embed(self._backbone.tokens(text)[: windows.WINDOW_TOKENS])

    def read(self, text: str) -> ReadWindows:
        ids = self._backbone.tokens(text)
        buckets = ngrams.buckets(ids, self._attacks.buckets)
        spans = windows.spans(len(ids))
        if len(spans) > windows.MAX_WINDOWS:
            spans = windows.choose(spans, self._attacks.suspicion(buckets, spans))
        passages = windows.passages(len(ids))
        passage = None
        if passages:
            passage = self._part(ids, passages[int(self._attacks.suspicion(buckets, passages).argmax())])
        return ReadWindows([self._part(ids, span) for span in spans], passage)

    def _part(self, ids: Ids, span: tuple[int, int]) -> Part:
        part = ids[span[0] : span[1]]
        return Part(part, self._backbone.embed(part))

    def _scores(self, read: ReadWindows, labels: Sequence[str]) -> dict[str, float]:
        trained: dict[str, float] = {}
        if not set(labels).isdisjoint(self._attacks.classes):
            trained |= self._attack_scores(read)
        if not set(labels).isdisjoint(self._domains):
            trained |= self._topic_scores(read)
        vectors = np.stack([part.vector for part in read.windows])
        return {
            label: trained[label] if label in trained else self._zero_shot.score(vectors, label) for label in labels
        }

    def _attack_scores(self, read: ReadWindows) -> dict[str, float]:
        """Return the scores of the attack labels. An injection may be one sentence anywhere in a text, so its score is
        the maximum. A jailbreak takes up most of its text, so the mean of the windows has the same weight as the
        maximum."""
        logits = _logits(self._attacks, read.windows)
        logits_by_class = dict(zip(self._attacks.classes, logits.max(axis=0), strict=True))
        jailbreak = self._attacks.classes.index("jailbreak")
        logits_by_class["jailbreak"] = (logits_by_class["jailbreak"] + logits[:, jailbreak].mean()) / 2
        if read.passage is not None:
            alone = dict(zip(self._attacks.classes, _logits(self._attacks, [read.passage])[0], strict=True))
            logits_by_class["prompt_injection"] = max(logits_by_class["prompt_injection"], alone["prompt_injection"])
        return {label: float(sigmoid(logit)) for label, logit in logits_by_class.items()}

    def _topic_scores(self, read: ReadWindows) -> dict[str, float]:
        """Return the scores of the topics. The probability of a domain is the sum of the probabilities of its intents;
        for example, `banking` includes balances and transfers. The score is the square root of the probability, because
        the class without a topic gets most of the probability of an uncertain text."""
        shares = np.stack([softmax(logits) for logits in _logits(self._topics, read.windows)])
        scores = np.zeros((len(shares), len(self._domains)), dtype=np.float32)
        np.add.at(scores.T, self._domain_of, shares.T)
        scores_by_domain = dict(zip(self._domains, map(float, np.sqrt(np.minimum(scores.max(axis=0), 1))), strict=True))
        scores_by_domain.pop(OUT_OF_SCOPE)
        return scores_by_domain


def _logits(head: ScoringHead, parts: Sequence[Part]) -> Vector:
    """Return the logits of the parts as an array [parts, classes]."""
    return np.stack([head.logits(part.vector, ngrams.buckets(part.ids, head.buckets)) for part in parts])
