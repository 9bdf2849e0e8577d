"""Statistics, summary and report of compliance bundles. Events are matched by entity type: an event counts for each
bundle that contains its type, and once in a sum over several bundles."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.governance.compliance_bundles import statistics
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
from gatehouse.platform.governance.compliance_bundles.statistics import BundleCounts
from gatehouse.platform.governance.compliance_bundles.table import BundleRow, active_bundles

_MAX_TOP_TRIGGERS: Final = 10
#: Field of `ByAction` for each action of a DLP event.
_ACTION_FIELDS: Final = {
    "block": "block", "redact": "redact", "prompt": "require_approval", "log_only": "allow", "allow": "allow",
}  # fmt: skip


async def stats(session: AsyncSession, bundle: BundleRow, days: int) -> BundleStats:
    period = _period(days)
    return _stats(bundle, await statistics.bundle_counts(session, bundle, period[0], period[-1]), period)


async def summary(session: AsyncSession, days: int) -> Summary:
    """Return the summary of the active bundles."""
    period, bundles = _period(days), await active_bundles(session)
    return _summary(bundles, await statistics.summary_counts(session, bundles, period[0], period[-1]), days)


async def report(session: AsyncSession, days: int) -> tuple[Report, Sequence[BundleRow]]:
    """Return the report, and the active bundles in the order of `bundle_details`."""
    period, bundles = _period(days), await active_bundles(session)
    counts = await statistics.report_counts(session, bundles, period[0], period[-1])
    result = Report(
        generated_at=utc_now(),
        period_days=days,
        summary=_summary(bundles, counts, days),
        bundle_details=[_stats(bundle, counts, period) for bundle in bundles],
    )
    return result, bundles


def _period(days: int) -> list[date]:
    """Return the last `days` days (UTC), up to and including today."""
    today = utc_now().date()
    return [today - timedelta(days=ago) for ago in reversed(range(days))]


def _summary(bundles: Sequence[BundleRow], counts: BundleCounts, days: int) -> Summary:
    return Summary(
        days=days,
        total_events=sum(event_count.events for event_count in counts.kinds),
        coverage_percent=round(100 * counts.covered / counts.requests, 2) if counts.requests else 0.0,
        top_triggers=_top_triggers(bundles, counts),
        bundles=[_totals(bundle, counts) for bundle in bundles],
    )


def _top_triggers(bundles: Sequence[BundleRow], counts: BundleCounts) -> list[TopTrigger]:
    events: Counter[tuple[str, str]] = Counter()
    for bundle in bundles:
        names = frozenset(bundle.seed_rule_mappings)
        for rule in counts.rules:
            if rule.entity_type in names:
                events[rule.name, bundle.name] += rule.events
    top = sorted(events.items(), key=lambda item: (-item[1], item[0]))[:_MAX_TOP_TRIGGERS]
    return [TopTrigger(rule_name=rule, bundle=bundle, event_count=count) for (rule, bundle), count in top]


def _totals(bundle: BundleRow, counts: BundleCounts) -> BundleFigures:
    by_action: Counter[str] = Counter()
    names = frozenset(bundle.seed_rule_mappings)
    for event_count in counts.kinds:
        if event_count.entity_type in names:
            by_action[_ACTION_FIELDS[event_count.action]] += event_count.events
    return BundleFigures(
        bundle_id=bundle.id,
        bundle_name=bundle.name,
        total_events=by_action.total(),
        by_action=ByAction.model_validate(by_action),
    )


def _stats(bundle: BundleRow, counts: BundleCounts, period: Sequence[date]) -> BundleStats:
    by_severity: Counter[str] = Counter()
    names = frozenset(bundle.seed_rule_mappings)
    for event_count in counts.kinds:
        if event_count.entity_type in names:
            by_severity[event_count.severity] += event_count.events
    days = [day.isoformat() for day in period]
    return BundleStats(
        **dict(_totals(bundle, counts)),
        by_severity=BySeverity.model_validate(by_severity),
        daily_trend=[Day(date=day, event_count=counts.days.get((bundle.id, day), 0)) for day in days],
    )
