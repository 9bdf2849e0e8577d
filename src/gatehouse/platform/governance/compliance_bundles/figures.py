"""What happened to the entity types of bundles, from the counts by day that the keeper adds to: their number does not
grow with the events.

Each question is one statement, so that all figures in an answer are of the same moment.
"""

from collections.abc import Iterable
from datetime import date
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.platform.governance.compliance_bundles.table import BundleRow

# Joined, not `= ANY`: with that, PostgreSQL expects a search of the index a type, and reads everybody's rows instead.
_HITS: Final = (
    "WITH hits AS MATERIALIZED (SELECT day, entity_type, rule_name, action, severity, events FROM dlp_counts"
    " JOIN unnest(CAST(:types AS text[])) AS wanted (entity_type) USING (entity_type)"
    " WHERE tenant_id = :tenant AND day BETWEEN :first AND :last) "
)
#: Each gives what it is, up to three texts and a number.
_KINDS: Final = (
    "SELECT 'kind' AS what, entity_type AS one, action AS two, severity AS three, sum(events)::bigint AS number"
    " FROM hits GROUP BY entity_type, action, severity"
)
_RULES: Final = (
    "SELECT 'rule', entity_type, rule_name, NULL, sum(events)::bigint FROM hits GROUP BY entity_type, rule_name"
)
_DAYS: Final = (
    "SELECT 'day', bundle_id::text, day::text, NULL, sum(events)::bigint"
    " FROM (SELECT day, entity_type, sum(events) AS events FROM hits GROUP BY day, entity_type) AS found"
    " JOIN unnest(CAST(:bundles AS uuid[]), CAST(:of_bundles AS text[])) AS named (bundle_id, entity_type)"
    " USING (entity_type) GROUP BY bundle_id, day"
)
_REQUESTS: Final = (
    "SELECT CASE WHEN entity_types && :types THEN 'covered' ELSE 'other' END, NULL, NULL, NULL, sum(requests)::bigint"
    " FROM dlp_request_counts WHERE tenant_id = :tenant AND day BETWEEN :first AND :last GROUP BY 1"
)


def _statement(*parts: str) -> TextClause:
    return text(_HITS + " UNION ALL ".join(parts))


_OF_BUNDLE: Final = _statement(_KINDS, _DAYS)
_OF_ALL: Final = _statement(_KINDS, _RULES, _REQUESTS)
_EVERYTHING: Final = _statement(_KINDS, _RULES, _DAYS, _REQUESTS)


class Kind(NamedTuple):
    entity_type: str
    action: str
    severity: str
    events: int


class Rule(NamedTuple):
    entity_type: str
    name: str
    events: int


class Figures(msgspec.Struct):
    kinds: list[Kind] = []
    rules: list[Rule] = []
    #: events by bundle and day (ISO)
    days: dict[tuple[UUID, str], int] = {}
    #: requests that hit one of the entity types
    covered: int = 0
    requests: int = 0


async def of_bundle(session: AsyncSession, bundle: BundleRow, first: date, last: date) -> Figures:
    """Kinds and days."""
    return await _ask(session, _OF_BUNDLE, [bundle], first, last)


async def of_all(session: AsyncSession, bundles: Iterable[BundleRow], first: date, last: date) -> Figures:
    """Kinds, rules and requests."""
    return await _ask(session, _OF_ALL, bundles, first, last)


async def everything(session: AsyncSession, bundles: Iterable[BundleRow], first: date, last: date) -> Figures:
    return await _ask(session, _EVERYTHING, bundles, first, last)


async def _ask(
    session: AsyncSession, statement: TextClause, bundles: Iterable[BundleRow], first: date, last: date
) -> Figures:
    pairs = [(bundle.id, entity_type) for bundle in bundles for entity_type in bundle.seed_rule_mappings]
    values = {
        "tenant": session.info["tenant_id"], "first": first, "last": last,
        "types": sorted({entity_type for _, entity_type in pairs}),
        "bundles": [bundle_id for bundle_id, _ in pairs], "of_bundles": [entity_type for _, entity_type in pairs],
    }  # fmt: skip
    wanted = {name: value for name, value in values.items() if name in statement._bindparams}
    found = Figures()
    for what, one, two, three, number in await session.execute(statement, wanted):
        match what:
            case "kind":
                found.kinds.append(Kind(one, two, three, number))
            case "rule":
                found.rules.append(Rule(one, two, number))
            case "day":
                found.days[UUID(one), two] = number
            case _:
                found.requests += number
                found.covered += number if what == "covered" else 0
    return found
