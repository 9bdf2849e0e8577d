"""Computes the F1 of an engine on each set, both over all labels of the set and over the labels that the engine claims
to find."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from bench.dlp.goals import GOALS
from bench.dlp.labels import MERGES
from bench.dlp.peers.engines import Finding
from bench.dlp.peers.labels import NAMES, Named
from bench.dlp.quality import judged
from bench.dlp.rows import Row, Text, load
from bench.dlp.scoring import DetectedValue, Level, score

Texts: TypeAlias = dict[str, Text]
#: the findings by text
Findings: TypeAlias = Mapping[str, Sequence[Finding]]


class Column(NamedTuple):
    """A set of texts and how it is judged. If `only` is not empty, only these labels are judged."""

    set: str
    level: Level
    only: tuple[str, ...] = ()


COLUMNS: Final[dict[str, Column]] = {
    name: Column(name, GOALS[name].level, GOALS[name].only)
    for name in ("a_detect_secrets", "a_gitleaks", "a_presidio", "b_presidio_research")
} | {"names": Column("b_presidio_research", "label", NAMES)}
CLEAN: Final = ("a_clean_text", "a_clean_code")
SETS: Final = tuple(dict.fromkeys([*(column.set for column in COLUMNS.values()), *CLEAN]))


def read(folder: Path) -> dict[str, Texts]:
    return {name: load(folder, name, {}) for name in SETS}


class F1(NamedTuple):
    """The F1 over all labels of a set, and over the labels that the engine claims to find."""

    whole: float | None
    claimed: float | None


def f1(texts: Texts, findings: Findings, named: Named, column: Column, claims: frozenset[str]) -> F1 | None:
    """Return the F1 of an engine, or None if the engine claims to find no label of the set."""
    request = {identity: judged(text, column.only) for identity, text in texts.items()}
    claimed = {identity: _of(text, claims) for identity, text in request.items()}
    made_for = "secret" in claims if column.level == "category" else any(map(_asks, claimed.values()))
    if not made_for:
        return None
    return F1(*(_scored(item, findings, named, column) for item in (request, claimed)))


def _asks(text: Text) -> bool:
    return any(row.positive and row.strong for row in text.rows)


def _scored(texts: Texts, findings: Findings, named: Named, column: Column) -> float | None:
    merged = {identity: _merged(text) for identity, text in texts.items() if text.rows}
    return score(merged, findings_by_text(findings, named), column.level).total.f1


def false_findings(sets: Mapping[str, Texts], findings: Mapping[str, Findings], named: Named) -> float:
    """Return the number of findings of secrets per 1,000 texts without secrets."""
    scores = [score(sets[name], findings_by_text(findings[name], named), GOALS[name].level) for name in CLEAN]
    return 1000 * sum(score.total.wrong for score in scores) / sum(score.texts for score in scores)


def findings_by_text(findings: Findings, named: Named) -> dict[str, list[DetectedValue]]:
    return {
        identity: sorted({DetectedValue(start, end, *named[name]) for start, end, name, _ in item})
        for identity, item in findings.items()
    }


def _of(text: Text, claims: frozenset[str]) -> Text:
    """Return the text with only the rows of claimed labels and the negative rows."""
    rows = [row for row in text.rows if row.label is None or row.label in claims or _secret(row, claims)]
    return dataclasses.replace(text, rows=rows, labels={label for label in text.labels if label in claims})


def _secret(row: Row, claims: frozenset[str]) -> bool:
    return row.category == "secret" and "secret" in claims


def _merged(text: Text) -> Text:
    """Return the text with merged labels: labels that one type of Gatehouse covers count as one label for all
    engines."""
    rows = [dataclasses.replace(row, label=MERGES.get(row.label or "", row.label)) for row in text.rows]
    return dataclasses.replace(text, rows=rows, labels={MERGES.get(label, label) for label in text.labels})
