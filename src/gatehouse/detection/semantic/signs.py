"""What is an attack whatever the rest of the text says: letters that nobody sees and a model reads."""

from collections.abc import Sequence
from typing import Final

from gatehouse.detection.models import Classifier
from gatehouse.detection.normalise.hidden import carried_texts

_LABEL: Final = "prompt_injection"
_SCORE: Final = 1.0
#: Letters that are hidden at least. Fewer are a slip of a program that draws flags.
_FEWEST_LETTERS: Final = 4


class Signed:
    """Another classifier's scores, raised where a sign says more."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    @property
    def labels(self) -> tuple[str, ...]:
        return self._classifier.labels

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        scored = self._classifier.classify(texts, labels)
        return [scores | scores_of_signs(text, labels) for text, scores in zip(texts, scored, strict=True)]


def scores_of_signs(text: str, labels: Sequence[str]) -> dict[str, float]:
    """Those of `labels` that the text has by a sign. Needs no model."""
    return {_LABEL: _SCORE} if _LABEL in labels and _hides_letters(text) else {}


def _hides_letters(text: str) -> bool:
    letters = others = 0
    # A half of a surrogate pair, which JSON may hold, cannot be searched.
    for carried in carried_texts(text.encode(errors="replace").decode()):
        letter_count = sum(map(str.isalpha, carried))
        letters += letter_count
        others += len(carried) - letter_count - carried.count(" ")
        # A number that is hidden is for the patterns to judge.
        if letters >= max(_FEWEST_LETTERS, others):
            return True
    return False
