"""Totals of the requests in a batch by day and model, for the model registry."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from gatehouse.engine.providers.failure import CREDENTIAL_REASONS, NOT_SENT
from gatehouse.engine.records.outcome import Failed, Outcome
from gatehouse.foundation.outbound import NoConnectionFree

#: Reasons of failed attempts in which nothing was sent to the model.
_NOT_SENT_REASONS: Final = NOT_SENT | {NoConnectionFree.reason}
#: DLP actions after which the caller receives no answer of the model.
_BLOCKING_ACTIONS: Final = frozenset({"BLOCK", "CANCEL"})


class ModelDay(NamedTuple):
    tenant_id: str
    provider: str
    model_id: str
    #: UTC day
    day: date


class ModelTotals(msgspec.Struct):
    requests: int = 0
    errors: int = 0
    blocked: int = 0
    flagged: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: Decimal = Decimal(0)
    first_at: datetime | None = None
    last_at: datetime | None = None

    def note_call(self, moment: datetime) -> None:
        self.first_at = moment if self.first_at is None else min(self.first_at, moment)
        self.last_at = moment if self.last_at is None else max(self.last_at, moment)


class ModelRows(msgspec.Struct):
    """Collects the totals of one batch."""

    by_day: dict[ModelDay, ModelTotals] = {}

    def add(self, outcome: Outcome[str], moment: datetime) -> None:
        """Add a request. `moment` is the timestamp of the outcome."""
        if outcome.provider is not None and outcome.model_id is not None:
            totals = self._totals(outcome, outcome.provider, outcome.model_id, moment)
            totals.note_call(moment)
            totals.requests += 1
            totals.errors += outcome.outcome == "error"
            totals.blocked += outcome.dlp_action in _BLOCKING_ACTIONS
            totals.input_tokens += (outcome.input_tokens or 0) + (outcome.cached_tokens or 0)
            totals.output_tokens += outcome.output_tokens or 0
            totals.usd += Decimal(outcome.cost_usd or 0)
        for attempt in outcome.attempts:
            if attempt.reason not in _NOT_SENT_REASONS and not _was_replaced(attempt, outcome):
                totals = self._totals(outcome, attempt.provider, attempt.model_id, moment)
                totals.note_call(moment)
                totals.errors += 1
        for event in outcome.rule_events:
            if event.kind == "model_registry" and event.model is not None:
                provider, _, model_id = event.model.partition("/")
                self._totals(outcome, provider, model_id, moment).flagged += 1

    def rows(self) -> Sequence[tuple[Any, ...]]:
        """Return the rows. They are sorted, so that concurrent keepers lock rows in the same order."""
        return [(*day, *msgspec.structs.astuple(totals)) for day, totals in sorted(self.by_day.items())]

    def _totals(self, outcome: Outcome[str], provider: str, model_id: str, moment: datetime) -> ModelTotals:
        return self.by_day.setdefault(ModelDay(outcome.tenant_id, provider, model_id, moment.date()), ModelTotals())


def _was_replaced(attempt: Failed, outcome: Outcome[str]) -> bool:
    """Return whether the provider refused a credential, and the same model answered with another one."""
    return (
        attempt.credential is not None
        and attempt.reason in CREDENTIAL_REASONS
        and outcome.attempt_ms is not None
        and (attempt.provider, attempt.model_id) == (outcome.provider, outcome.model_id)
    )
