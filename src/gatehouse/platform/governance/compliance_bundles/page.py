"""Renders the report as a self-contained HTML page for reading and printing, without scripts.

The page is built as an element tree, so that no value can become markup.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from gatehouse.platform.governance.compliance_bundles.schemas import BundleStats, Report, Summary
from gatehouse.platform.governance.compliance_bundles.table import BundleRow

_STYLE: Final = """
@page { margin: 18mm }
body { font: 10.5pt/1.45 system-ui, sans-serif; color: #1b1b1b; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 20pt; margin: 0 } h2 { font-size: 14pt; margin: 2rem 0 .4rem; break-after: avoid }
h3 { font-size: 11pt; margin: 1rem 0 .2rem; break-after: avoid }
section { break-inside: avoid-page }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ccc }
thead { display: table-header-group } tr { break-inside: avoid }
.number { text-align: right; font-variant-numeric: tabular-nums }
.note { color: #555; font-size: 9pt }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0 } dd { margin: 0 }
svg { width: 100%; height: 60px } path { fill: #00796b }
"""

#: Response headers. The content security policy allows only this page's own style, so that no resource is loaded and no
#: script runs.
HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_NOTES: Final = (
    "An event is one rule that found something in one direction of one request. It is counted for every bundle that"
    " contains its entity type, and once in the sum over all bundles. Days are UTC.",
    "Coverage is the share of all requests in which at least one entity type of an active bundle was found.",
    "Severity follows from the action: blocked is critical, held for approval high, redacted medium, logged low."
    " Allowed are events that were only logged. No matched text is kept anywhere.",
)


def render(report: Report, bundles: Sequence[BundleRow], organization: str) -> str:
    """Return the page. `bundles` are those of `report.bundle_details`, in the same order."""
    html = Element("html", lang="en")
    head = SubElement(html, "head")
    SubElement(head, "meta", charset="utf-8")
    _text(head, "title", f"Compliance report: {organization}")
    _text(head, "style", _STYLE)
    body = SubElement(html, "body")
    _text(body, "h1", "Compliance report")
    days = report.period_days
    _terms(
        body,
        ("Organization", organization),
        ("Period", f"{days} day{'s' if days != 1 else ''} up to {report.generated_at:%Y-%m-%d}"),
        ("Generated", _format_time(report.generated_at)),
    )
    _summary(body, report.summary, bundles)
    for details, bundle in zip(report.bundle_details, bundles, strict=True):
        _bundle(body, details, bundle)
    _text(body, "h2", "How to read this")
    for note in _NOTES:
        _text(body, "p", note).set("class", "note")
    return "<!DOCTYPE html>\n" + tostring(html, encoding="unicode", method="html")


def _summary(body: Element, summary: Summary, bundles: Sequence[BundleRow]) -> None:
    _text(body, "h2", "Summary")
    _terms(body, ("Events", f"{summary.total_events:,}"), ("Coverage", f"{summary.coverage_percent:.2f} % of requests"))
    if not bundles:
        _text(body, "p", "No compliance bundle is active.")
        return
    _text(body, "h3", "Bundles")
    _table(
        body,
        ("Bundle", "Framework", "#Events", "#Blocked", "#Held for approval", "#Redacted", "#Allowed"),
        (
            (
                totals.bundle_name, bundle.regulatory_framework, totals.total_events, totals.by_action.block,
                totals.by_action.require_approval, totals.by_action.redact, totals.by_action.allow,
            )
            for totals, bundle in zip(summary.bundles, bundles, strict=True)
        ),
    )  # fmt: skip
    if summary.top_triggers:
        _text(body, "h3", "Rules with the most events")
        rows = ((trigger.rule_name, trigger.bundle, trigger.event_count) for trigger in summary.top_triggers)
        _table(body, ("Rule", "Bundle", "#Events"), rows)


def _bundle(body: Element, details: BundleStats, bundle: BundleRow) -> None:
    section = SubElement(body, "section")
    _text(section, "h2", bundle.name)
    if bundle.description:
        _text(section, "p", bundle.description)
    acknowledgement = "no"
    if bundle.acknowledged_at is not None:
        acknowledgement = f"by {bundle.acknowledged_by}, {_format_time(bundle.acknowledged_at)}"
    _terms(
        section,
        ("Framework", f"{bundle.regulatory_framework}, version {bundle.version}"),
        ("Enabled", "yes" if bundle.enabled else "no"),
        ("Acknowledged", acknowledgement),
        ("Entity types", ", ".join(bundle.seed_rule_mappings) or "none"),
        ("Events", f"{details.total_events:,}"),
    )
    severity = details.by_severity
    numbers = (severity.critical, severity.high, severity.medium, severity.low)
    _table(section, ("#Critical", "#High", "#Medium", "#Low"), (numbers,))
    _trend(section, details)


def _trend(section: Element, details: BundleStats) -> None:
    days = details.daily_trend
    peak = max(day.event_count for day in days)
    if peak == 0:
        return
    _text(section, "h3", "Events a day")
    svg = SubElement(section, "svg", viewBox=f"0 0 {len(days) * 10} 100", preserveAspectRatio="none", role="img")
    _text(svg, "title", f"At most {peak:,} events a day")
    # Draws all bars as one path, because 365 elements for each bundle would be the largest part of the page.
    bars = (
        f"M{index * 10 + 1} 100v-{100 * day.event_count / peak:.1f}h8V100z"
        for index, day in enumerate(days)
        if day.event_count
    )
    SubElement(svg, "path", d="".join(bars))
    _text(section, "p", f"{days[0].date} to {days[-1].date}; at most {peak:,} a day.").set("class", "note")


def _text(parent: Element, tag: str, text: str) -> Element:
    element = SubElement(parent, tag)
    element.text = text
    return element


def _terms(parent: Element, *terms: tuple[str, str]) -> None:
    term_list = SubElement(parent, "dl")
    for name, value in terms:
        _text(term_list, "dt", name)
        _text(term_list, "dd", value)


def _table(parent: Element, columns: Sequence[str], rows: Iterable[Sequence[str | int]]) -> None:
    """Append a table. A column whose name begins with `#` is numeric."""
    table = SubElement(parent, "table")
    heads = SubElement(SubElement(table, "thead"), "tr")
    for column in columns:
        head = _text(heads, "th", column.removeprefix("#"))
        head.attrib |= {"scope": "col"} | ({"class": "number"} if column.startswith("#") else {})
    body = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(body, "tr")
        for value in row:
            if isinstance(value, int):
                _text(line, "td", f"{value:,}").set("class", "number")
            else:
                _text(line, "td", value)


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
