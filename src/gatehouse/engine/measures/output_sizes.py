"""Typical lengths of the answers of models. They are used to charge a call whose client did not wait for the answer."""

from collections import OrderedDict, deque
from statistics import median_high
from typing import Final
from uuid import UUID

_MAX_ANSWERS_PER_MODEL: Final = 64
#: Maximum number of models that are kept. Those that answered last are kept.
_MAX_MODELS: Final = 10_000


class OutputSizes:
    """One worker's record of output tokens, by model."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[UUID, deque[int]] = OrderedDict()

    def add(self, model_id: UUID, output_tokens: int) -> None:
        """Add the size of a complete answer of the model with this catalog entry."""
        answers = self._tokens.get(model_id)
        if answers is None:
            answers = self._tokens[model_id] = deque(maxlen=_MAX_ANSWERS_PER_MODEL)
            if len(self._tokens) > _MAX_MODELS:
                self._tokens.popitem(last=False)
        else:
            self._tokens.move_to_end(model_id)
        answers.append(output_tokens)

    def median(self, model_id: UUID) -> int | None:
        """Return the median of the output tokens, or None for a model from which this worker has no answer."""
        answers = self._tokens.get(model_id)
        return None if answers is None else median_high(answers)
