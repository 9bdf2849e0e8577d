"""What a batch's requests say about models: the days of the model registry's figures."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from gatehouse.engine.outcome import Outcome

#: Failed tries that never reached the model.
_NOT_SENT: Final = frozenset({"circuit_open", "kill_switched", "no_connection_free"})
#: Actions of DLP by which a caller does not get an answer.
_WITHHELD: Final = frozenset({"BLOCK", "CANCEL"})


class ModelDay(NamedTuple):
    tenant_id: str
    provider: str
    model_id: str
    #: UTC
    day: date


class Calls(msgspec.Struct):
    requests: int = 0
    errors: int = 0
    blocked: int = 0
    flagged: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)
    first_at: datetime | None = None
    last_at: datetime | None = None

    def called(self, moment: datetime) -> None:
        self.first_at = moment if self.first_at is None else min(self.first_at, moment)
        self.last_at = moment if self.last_at is None else max(self.last_at, moment)


class ModelRows(msgspec.Struct):
    by_day: dict[ModelDay, Calls] = {}

    def add(self, outcome: Outcome[str], moment: datetime) -> None:
        """`moment` is the outcome's timestamp."""
        if outcome.provider is not None and outcome.model_id is not None:
            calls = self._of(outcome, outcome.provider, outcome.model_id, moment)
            calls.called(moment)
            calls.requests += 1
            calls.errors += outcome.outcome == "error"
            calls.blocked += outcome.dlp_action in _WITHHELD
            calls.input_tokens += (outcome.input_tokens or 0) + (outcome.cached_tokens or 0)
            calls.output_tokens += outcome.output_tokens or 0
            calls.usd += Decimal(outcome.cost_usd or 0)
        for attempt in outcome.attempts:
            if attempt.reason not in _NOT_SENT:
                calls = self._of(outcome, attempt.provider, attempt.model_id, moment)
                calls.called(moment)
                calls.errors += 1
        for event in outcome.rule_events:
            if event.kind == "model_registry" and event.model is not None:
                provider, _, model_id = event.model.partition("/")
                self._of(outcome, provider, model_id, moment).flagged += 1

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """In order: two keepers that add to the same must not wait for each other."""
        return [(*day, *msgspec.structs.astuple(calls)) for day, calls in sorted(self.by_day.items())]

    def _of(self, outcome: Outcome[str], provider: str, model_id: str, moment: datetime) -> Calls:
        return self.by_day.setdefault(ModelDay(outcome.tenant_id, provider, model_id, moment.date()), Calls())
