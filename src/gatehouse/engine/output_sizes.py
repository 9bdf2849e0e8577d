"""How long the answers of models usually are: what a call is charged for whose client did not wait for the answer."""

from collections import OrderedDict, deque
from statistics import median_high
from typing import Final
from uuid import UUID

#: Answers of one model that are remembered.
_ANSWERS: Final = 64
#: Models that are remembered: those that answered last.
_MODELS: Final = 10_000


class OutputSizes:
    """One worker's."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[UUID, deque[int]] = OrderedDict()

    def add(self, model_id: UUID, output_tokens: int) -> None:
        """A whole answer of a catalog entry."""
        answers = self._tokens.get(model_id)
        if answers is None:
            answers = self._tokens[model_id] = deque(maxlen=_ANSWERS)
            if len(self._tokens) > _MODELS:
                self._tokens.popitem(last=False)
        else:
            self._tokens.move_to_end(model_id)
        answers.append(output_tokens)

    def median(self, model_id: UUID) -> int | None:
        """None for a model that has not answered here."""
        answers = self._tokens.get(model_id)
        return None if answers is None else median_high(answers)
