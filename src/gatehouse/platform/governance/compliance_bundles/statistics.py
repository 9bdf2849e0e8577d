"""Reads statistics of the bundles' entity types from the keeper's daily counts. The number of counts does not grow with
the number of events.

Each read is one statement, so that all numbers in a response are consistent.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.governance.compliance_bundles.table import BundleRow

# This is a join, because for `= ANY` PostgreSQL chooses a plan that scans the rows of all tenants.
_HITS: Final = (
    "WITH hits AS MATERIALIZED (SELECT day, entity_type, rule_name, action, severity, events FROM dlp_counts"
    " JOIN unnest(CAST(:types AS text[])) AS monitored (entity_type) USING (entity_type)"
    " WHERE tenant_id = :tenant AND day BETWEEN :first AND :last) "
)
# Each query returns a tag, up to three texts and a number.
_KINDS: Final = (
    "SELECT 'kind' AS tag, entity_type, action, severity, sum(events)::bigint AS number"
    " FROM hits GROUP BY entity_type, action, severity"
)
_RULES: Final = (
    "SELECT 'rule', entity_type, rule_name, NULL, sum(events)::bigint FROM hits GROUP BY entity_type, rule_name"
)
_DAYS: Final = (
    "SELECT 'day', bundle_id::text, day::text, NULL, sum(events)::bigint"
    " FROM (SELECT day, entity_type, sum(events) AS events FROM hits GROUP BY day, entity_type) AS daily"
    " JOIN unnest(CAST(:bundles AS uuid[]), CAST(:of_bundles AS text[])) AS mappings (bundle_id, entity_type)"
    " USING (entity_type) GROUP BY bundle_id, day"
)
_REQUESTS: Final = (
    "SELECT CASE WHEN entity_types && :types THEN 'covered' ELSE 'other' END, NULL, NULL, NULL, sum(requests)::bigint"
    " FROM dlp_request_counts WHERE tenant_id = :tenant AND day BETWEEN :first AND :last GROUP BY 1"
)


def _statement(*parts: str) -> TextClause:
    return text(_HITS + " UNION ALL ".join(parts))


_BUNDLE_COUNTS: Final = _statement(_KINDS, _DAYS)
_SUMMARY_COUNTS: Final = _statement(_KINDS, _RULES, _REQUESTS)
_REPORT_COUNTS: Final = _statement(_KINDS, _RULES, _DAYS, _REQUESTS)


class EventCount(NamedTuple):
    """Events of one entity type, action and severity."""

    entity_type: str
    action: str
    severity: str
    events: int


class RuleCount(NamedTuple):
    """Events of one rule and entity type."""

    entity_type: str
    name: str
    events: int


class BundleCounts(msgspec.Struct):
    """Counts of a period. Fields that the query did not read are empty."""

    kinds: list[EventCount] = []
    rules: list[RuleCount] = []
    #: Number of events by bundle and day (ISO 8601).
    days: dict[tuple[UUID, str], int] = {}
    #: Number of requests that matched at least one of the entity types.
    covered: int = 0
    requests: int = 0


async def bundle_counts(session: AsyncSession, bundle: BundleRow, first: date, last: date) -> BundleCounts:
    """Return `kinds` and `days` of one bundle."""
    return await _read(session, _BUNDLE_COUNTS, [bundle], first, last)


async def summary_counts(session: AsyncSession, bundles: Iterable[BundleRow], first: date, last: date) -> BundleCounts:
    """Return `kinds`, `rules`, `covered` and `requests` of the bundles together."""
    return await _read(session, _SUMMARY_COUNTS, bundles, first, last)


async def report_counts(session: AsyncSession, bundles: Iterable[BundleRow], first: date, last: date) -> BundleCounts:
    """Return all fields of the counts of these bundles."""
    return await _read(session, _REPORT_COUNTS, bundles, first, last)


async def _read(
    session: AsyncSession, statement: TextClause, bundles: Iterable[BundleRow], first: date, last: date
) -> BundleCounts:
    pairs = [(bundle.id, entity_type) for bundle in bundles for entity_type in bundle.seed_rule_mappings]
    values = {
        "tenant": session.info["tenant_id"], "first": first, "last": last,
        "types": sorted({entity_type for _, entity_type in pairs}),
        "bundles": [bundle_id for bundle_id, _ in pairs], "of_bundles": [entity_type for _, entity_type in pairs],
    }  # fmt: skip
    parameters = {name: value for name, value in values.items() if name in statement._bindparams}
    counts = BundleCounts()
    for tag, first_text, second_text, third_text, number in await session.execute(statement, parameters):
        match tag:
            case "kind":
                counts.kinds.append(EventCount(first_text, second_text, third_text, number))
            case "rule":
                counts.rules.append(RuleCount(first_text, second_text, number))
            case "day":
                counts.days[UUID(first_text), second_text] = number
            case _:
                counts.requests += number
                counts.covered += number if tag == "covered" else 0
    return counts
