"""Signs of an attack that do not depend on the rest of the text: letters that are invisible, but read by a model."""

from collections.abc import Sequence
from typing import Final

from gatehouse.detection.models import Classifier
from gatehouse.detection.normalise.hidden import carried_texts

_LABEL: Final = "prompt_injection"
_SCORE: Final = 1.0
#: Fewer hidden letters come from programs that draw flags.
_MIN_HIDDEN_LETTERS: Final = 4


class Signed:
    """A classifier whose scores are raised by signs."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    @property
    def labels(self) -> tuple[str, ...]:
        return self._classifier.labels

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        scored = self._classifier.classify(texts, labels)
        return [scores | scores_of_signs(text, labels) for text, scores in zip(texts, scored, strict=True)]


def scores_of_signs(text: str, labels: Sequence[str]) -> dict[str, float]:
    """Return the labels that the text has by a sign. Needs no model."""
    return {_LABEL: _SCORE} if _LABEL in labels and _hides_letters(text) else {}


def _hides_letters(text: str) -> bool:
    letters = others = 0
    # A lone surrogate, which JSON may contain, cannot be searched.
    for carried in carried_texts(text.encode(errors="replace").decode()):
        letter_count = sum(map(str.isalpha, carried))
        letters += letter_count
        others += len(carried) - letter_count - carried.count(" ")
        # Hidden numbers are left to the patterns.
        if letters >= max(_MIN_HIDDEN_LETTERS, others):
            return True
    return False
