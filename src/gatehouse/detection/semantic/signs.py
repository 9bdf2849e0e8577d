"""Detects signs of an attack without a model. The only sign is invisible letters that a model can read."""

from collections.abc import Sequence
from typing import Final

from gatehouse.detection.models import Classifier
from gatehouse.detection.normalise.hidden import hidden_texts

_LABEL: Final = "prompt_injection"
_SCORE: Final = 1.0
#: Minimum hidden letters that are a sign. Programs that draw flags produce fewer.
_MIN_HIDDEN_LETTERS: Final = 4


class SignClassifier:
    """Wraps a classifier. If a text has a sign of an attack, the label `prompt_injection` gets the score 1.0."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    @property
    def labels(self) -> tuple[str, ...]:
        return self._classifier.labels

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        scored = self._classifier.classify(texts, labels)
        return [scores | scores_of_signs(text, labels) for text, scores in zip(texts, scored, strict=True)]


def scores_of_signs(text: str, labels: Sequence[str]) -> dict[str, float]:
    """Return the score of each of `labels` for which the text has a sign. Other labels are left out."""
    return {_LABEL: _SCORE} if _LABEL in labels and _hides_letters(text) else {}


def _hides_letters(text: str) -> bool:
    letters = others = 0
    # JSON may contain lone surrogates, which cannot be searched. Each is replaced by a question mark.
    for hidden_text in hidden_texts(text.encode(errors="replace").decode()):
        letter_count = sum(map(str.isalpha, hidden_text))
        letters += letter_count
        others += len(hidden_text) - letter_count - hidden_text.count(" ")
        # Hidden text that is mostly numbers is not a sign. Patterns detect hidden numbers.
        if letters >= max(_MIN_HIDDEN_LETTERS, others):
            return True
    return False
