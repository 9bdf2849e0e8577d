"""Compares the deployments of a model alias: requests, errors, cost and latency, from the usage records."""

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Unprocessable
from gatehouse.foundation.http.envelopes import ParameterFault
from gatehouse.platform.records.hot import visible_since
from gatehouse.platform.routing.model_aliases import table
from gatehouse.platform.routing.model_aliases.schemas import Comparison, DeploymentComparison
from gatehouse.platform.routing.model_aliases.table import ModelAliasRow
from gatehouse.policy.catalog import DeploymentRole

#: Maximum number of usage records that are compared, the newest first.
MAX_COMPARED_RECORDS: Final = 200_000
#: Maximum length of the compared period, and its default length.
MAX_PERIOD: Final = timedelta(days=31)
DEFAULT_PERIOD: Final = timedelta(days=1)

#: provider, model id, label of the credential (None if the deployment specifies none), role
_Key = tuple[str, str, str | None, DeploymentRole]


class InvalidPeriod(Unprocessable):
    def __init__(self, parameter: str, fault: str) -> None:
        super().__init__(faults=[ParameterFault(("query", parameter), fault)])


async def comparison(
    session: AsyncSession, row: ModelAliasRow, since: datetime | None, until: datetime | None
) -> Comparison:
    """Return the comparison of a period. The default is the last day. Raises `InvalidPeriod`."""
    until = until or utc_now()
    since = since or until - DEFAULT_PERIOD
    if not timedelta(0) < until - since <= MAX_PERIOD:
        raise InvalidPeriod("from", f"must be before `to`, and at most {MAX_PERIOD.days} days before it")
    # Records from before this time are only in the archive.
    hot = await visible_since(session)
    rows = await table.comparison(
        session,
        row.name,
        since if hot is None else max(since, hot),
        until,
        by_credential=[
            f"{entry['provider']}/{entry['model_id']}" for entry in row.deployments if entry.get("credential")
        ],
        max_records=MAX_COMPARED_RECORDS,
    )
    totals: dict[_Key, dict[str, Any]] = {
        (entry["provider"], entry["model_id"], entry.get("credential"), entry["role"]): _empty()
        for entry in row.deployments
    }
    records = 0
    for counted in rows:
        if counted.provider is None:
            records = counted.requests
            continue
        role: DeploymentRole = "shadow" if counted.shadow else "live"
        total = totals.setdefault((counted.provider, counted.model_id, counted.credential, role), _empty())
        total["requests"] += counted.requests + counted.failed
        total["errors"] += counted.errors + counted.failed
        if not counted.failed:
            latency = counted.latency or [None, None]
            total |= {
                "cost_usd": counted.cost_usd,
                "input_tokens": counted.input_tokens,
                "output_tokens": counted.output_tokens,
                "latency_median_ms": _rounded(latency[0]),
                "latency_p95_ms": _rounded(latency[1]),
                "time_to_first_token_median_ms": _rounded(counted.first_token),
            }
    return Comparison(
        alias=row.name,
        since=since,
        until=until,
        records=records,
        truncated=records >= MAX_COMPARED_RECORDS,
        deployments=[_shown(key, total) for key, total in totals.items()],
    )


def _empty() -> dict[str, Any]:
    return {
        "requests": 0, "errors": 0, "cost_usd": 0, "input_tokens": 0, "output_tokens": 0, "latency_median_ms": None,
        "latency_p95_ms": None, "time_to_first_token_median_ms": None,
    }  # fmt: skip


def _shown(key: _Key, total: dict[str, Any]) -> DeploymentComparison:
    provider, model_id, credential, role = key
    rate = round(total["errors"] / total["requests"], 6) if total["requests"] else 0.0
    return DeploymentComparison(
        provider=provider, model_id=model_id, credential=credential, role=role, error_rate=rate, **total
    )


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 1)
