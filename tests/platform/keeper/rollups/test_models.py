"""The counts for the registry's figures of a model's use: one row for each model and day."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.engine.records.outcome import Failed, RuleEvent

MOMENT = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)


def days(platform: RunningPlatform, tenant: Tenant) -> dict[tuple[str, str], dict[str, Any]]:
    names = (
        "requests",
        "errors",
        "blocked",
        "flagged",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "first_at",
        "last_at",
    )
    rows = platform.sql(
        f"SELECT model_id, day::text, {', '.join(names)} FROM model_days WHERE tenant_id = %s ORDER BY 1, 2",
        [tenant.id],
    )
    return {(model, day): dict(zip(names, rest, strict=True)) for model, day, *rest in rows}


async def test_a_models_day_is_summed_over_batches(platform: RunningPlatform, tenant: Tenant, journal: Journal) -> None:
    later = MOMENT + timedelta(seconds=30)
    next_day = MOMENT + timedelta(minutes=5)
    await journal.append(outcome(tenant.id, timestamp=later.timestamp(), cached_tokens=4))
    await journal.drain()
    broken = {"outcome": "error", "status": 502, "cost_usd": None, "input_tokens": None, "output_tokens": None}
    await journal.append(
        outcome(tenant.id, timestamp=MOMENT.timestamp(), dlp_action="BLOCK", outcome="refused", status=403),
        outcome(tenant.id, timestamp=next_day.timestamp(), **broken),
    )
    await journal.drain()
    rows = days(platform, tenant)
    assert {**rows["echo", "2026-03-01"], "cost_usd": str(rows["echo", "2026-03-01"]["cost_usd"])} == {
        "requests": 2, "errors": 0, "blocked": 1, "flagged": 0, "input_tokens": 10, "output_tokens": 10,
        "cost_usd": "0.000026", "first_at": MOMENT, "last_at": later,
    }  # fmt: skip
    assert rows["echo", "2026-03-02"] == {
        "requests": 1, "errors": 1, "blocked": 0, "flagged": 0, "input_tokens": 0, "output_tokens": 0,
        "cost_usd": 0, "first_at": next_day, "last_at": next_day,
    }  # fmt: skip


async def test_failed_attempts_count_for_their_model_and_unsent_ones_for_none(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    tries = [("down", 503, "http_error"), ("down", None, "timeout"), ("open", None, "circuit_open")]
    attempts = tuple(
        Failed(provider="sandbox", model_id=model, status=status, reason=reason) for model, status, reason in tries
    )
    await journal.append(outcome(tenant.id, timestamp=MOMENT.timestamp(), attempts=attempts))
    await journal.drain()
    rows = days(platform, tenant)
    assert {model: (row["requests"], row["errors"]) for (model, _), row in rows.items()} == {
        "echo": (1, 0), "down": (0, 2),
    }  # fmt: skip
    assert rows["down", "2026-03-01"]["last_at"] == MOMENT


async def test_a_refused_credential_is_no_error_of_the_model_if_another_credential_answered(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    def refused(model: str, reason: str, credential: str | None = "default") -> Failed:
        return Failed(provider="sandbox", model_id=model, status=429, reason=reason, credential=credential)

    timestamp = MOMENT.timestamp()
    await journal.append(
        outcome(
            tenant.id, timestamp=timestamp, attempt_ms=1.0, credential="second",
            attempts=(refused("echo", "rate_limited"), refused("echo", "unauthorized")),
        ),
        # Failures of the model, not of one of several credentials.
        outcome(tenant.id, timestamp=timestamp, attempt_ms=1.0, attempts=(refused("echo", "timeout"),)),
        outcome(tenant.id, timestamp=timestamp, attempt_ms=1.0, attempts=(refused("echo", "rate_limited", None),)),
        # Another model answered, or none.
        outcome(tenant.id, timestamp=timestamp, attempt_ms=1.0, attempts=(refused("other", "rate_limited"),)),
        outcome(
            tenant.id, timestamp=timestamp, provider=None, model_id=None, outcome="error", status=502,
            attempts=(refused("none", "rate_limited"), refused("none", "unauthorized")),
        ),
        outcome(tenant.id, timestamp=timestamp, attempts=(refused("full", "deployment_full", None),)),
    )  # fmt: skip
    await journal.drain()
    rows = days(platform, tenant)
    assert {model: row["errors"] for (model, _), row in rows.items()} == {"echo": 2, "other": 1, "none": 2}


async def test_a_call_that_the_registry_refused_is_counted_but_not_as_a_call_of_the_model(
    platform: RunningPlatform, tenant: Tenant, journal: Journal
) -> None:
    rule_event = RuleEvent(
        kind="model_registry", rule_id="model_not_registered", rule_name="x", action="BLOCK", result="matched",
        model="sandbox/other/one",
    )  # fmt: skip
    refused = {"provider": None, "model_id": None, "outcome": "refused", "status": 403}
    await journal.append(outcome(tenant.id, timestamp=MOMENT.timestamp(), rule_events=(rule_event,), **refused))
    await journal.drain()
    (row,) = days(platform, tenant).items()
    assert row[0] == ("other/one", "2026-03-01")
    assert (row[1]["flagged"], row[1]["requests"], row[1]["first_at"]) == (1, 0, None)
