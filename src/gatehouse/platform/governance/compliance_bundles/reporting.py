"""Stats, summary and report (reference 3, Compliance bundles, Reporting objects). Figures join on the entity type: an
event counts for each bundle that names its own, and once in a sum over several bundles."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.governance.compliance_bundles import figures
from gatehouse.platform.governance.compliance_bundles.figures import Figures
from gatehouse.platform.governance.compliance_bundles.schemas import (
    BundleFigures,
    BundleStats,
    ByAction,
    BySeverity,
    Day,
    Report,
    Summary,
    TopTrigger,
)
from gatehouse.platform.governance.compliance_bundles.table import BundleRow, active_bundles

_TOP: Final = 10
#: What the figures call an action.
_ACTIONS: Final = {
    "block": "block", "redact": "redact", "prompt": "require_approval", "log_only": "allow", "allow": "allow",
}  # fmt: skip


async def stats(session: AsyncSession, bundle: BundleRow, days: int) -> BundleStats:
    period = _period(days)
    return _stats(bundle, await figures.of_bundle(session, bundle, period[0], period[-1]), period)


async def summary(session: AsyncSession, days: int) -> Summary:
    """Of the active bundles."""
    period, bundles = _period(days), await active_bundles(session)
    return _summary(bundles, await figures.of_all(session, bundles, period[0], period[-1]), days)


async def report(session: AsyncSession, days: int) -> tuple[Report, Sequence[BundleRow]]:
    """The report, and the bundles that it is about, in its order."""
    period, bundles = _period(days), await active_bundles(session)
    found = await figures.everything(session, bundles, period[0], period[-1])
    made = Report(
        generated_at=utc_now(),
        period_days=days,
        summary=_summary(bundles, found, days),
        bundle_details=[_stats(bundle, found, period) for bundle in bundles],
    )
    return made, bundles


def _period(days: int) -> list[date]:
    """So many days (UTC), today the last."""
    today = utc_now().date()
    return [today - timedelta(days=ago) for ago in reversed(range(days))]


def _summary(bundles: Sequence[BundleRow], found: Figures, days: int) -> Summary:
    return Summary(
        days=days,
        total_events=sum(kind.events for kind in found.kinds),
        coverage_percent=round(100 * found.covered / found.requests, 2) if found.requests else 0.0,
        top_triggers=_top(bundles, found),
        bundles=[_figures(bundle, found) for bundle in bundles],
    )


def _top(bundles: Sequence[BundleRow], found: Figures) -> list[TopTrigger]:
    events: Counter[tuple[str, str]] = Counter()
    for bundle in bundles:
        names = frozenset(bundle.seed_rule_mappings)
        for rule in found.rules:
            if rule.entity_type in names:
                events[rule.name, bundle.name] += rule.events
    strongest = sorted(events.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    return [TopTrigger(rule_name=rule, bundle=bundle, event_count=count) for (rule, bundle), count in strongest]


def _figures(bundle: BundleRow, found: Figures) -> BundleFigures:
    by_action: Counter[str] = Counter()
    names = frozenset(bundle.seed_rule_mappings)
    for kind in found.kinds:
        if kind.entity_type in names:
            by_action[_ACTIONS[kind.action]] += kind.events
    return BundleFigures(
        bundle_id=bundle.id,
        bundle_name=bundle.name,
        total_events=by_action.total(),
        by_action=ByAction.model_validate(by_action),
    )


def _stats(bundle: BundleRow, found: Figures, period: Sequence[date]) -> BundleStats:
    by_severity: Counter[str] = Counter()
    names = frozenset(bundle.seed_rule_mappings)
    for kind in found.kinds:
        if kind.entity_type in names:
            by_severity[kind.severity] += kind.events
    days = [day.isoformat() for day in period]
    return BundleStats(
        **dict(_figures(bundle, found)),
        by_severity=BySeverity.model_validate(by_severity),
        daily_trend=[Day(date=day, event_count=found.days.get((bundle.id, day), 0)) for day in days],
    )
