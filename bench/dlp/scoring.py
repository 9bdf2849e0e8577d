"""Computes the precision, recall and F1 of findings.

A finding is *right* if it overlaps a judged span and has the same label or, on the level of categories, the same
category. A span is *found* if a right finding overlaps it. On the level of labels, a finding with a general label
(`api_key`, `generic_secret`) is right for any secret.

A finding that is not right is *wrong*, unless it cannot be judged. A finding cannot be judged in these cases: it
overlaps a span that is not judged; the text has only such spans; nobody has searched this text for the label or
category of the finding; or the negatives of the text are about a single label and the level is the category."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from bench.dlp.rows import Row, Text

Level = Literal["label", "category"]
CATCH_ALL: Final = frozenset({"api_key", "generic_secret"})


class DetectedValue(NamedTuple):
    start: int
    end: int
    label: str
    category: str


@dataclass
class Count:
    asked: int = 0
    found: int = 0
    right: int = 0
    wrong: int = 0

    @property
    def precision(self) -> float | None:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def recall(self) -> float | None:
        return self.found / self.asked if self.asked else None

    @property
    def f1(self) -> float | None:
        if not self.asked:
            return None
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


class Miss(NamedTuple):
    kind: Literal["missed", "false"]
    key: str
    text: str
    start: int
    end: int


@dataclass
class Score:
    per: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    #: maps each label to counts of the wrong findings at its spans, with `nothing` for spans without a finding
    confusion: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    misses: list[Miss] = field(default_factory=list)
    texts: int = 0
    alarms: int = 0

    @property
    def total(self) -> Count:
        counts = self.per.values()
        return Count(*(sum(getattr(count, name) for count in counts) for name in ("asked", "found", "right", "wrong")))


def score(texts: Mapping[str, Text], findings: Mapping[str, Iterable[DetectedValue]], level: Level) -> Score:
    result = Score()
    for identity, text in texts.items():
        _score_text(result, text, list(findings.get(identity, ())), level)
    return result


def _score_text(result: Score, text: Text, findings: list[DetectedValue], level: Level) -> None:
    required = [row for row in text.rows if row.positive and row.strong]
    unsure = [row for row in text.rows if row.positive and not row.strong]
    refused = [
        row
        for row in text.rows
        if not row.positive and row.strong and (level == "label" or row.scope in {"any", "annotated"})
    ]
    for row in required:
        key = str(row.label if level == "label" else row.category)
        result.per[key].asked += 1
        if any(_overlap(row, finding) and _names(row, finding, level) for finding in findings):
            result.per[key].found += 1
        else:
            here = {finding.label for finding in findings if _overlap(row, finding)} or {"nothing"}
            result.confusion[str(row.label)].update(here)
            result.misses.append(Miss("missed", key, text.text, row.start, row.end))
    alarmed = False
    for finding in findings:
        named = next((row for row in required if _overlap(row, finding) and _names(row, finding, level)), None)
        if named is not None:
            general = level == "label" and finding.label in CATCH_ALL
            key = str(named.label) if general else finding.label if level == "label" else finding.category
            result.per[key].right += 1
        elif _judged(text, finding, required, unsure, refused, level):
            key = finding.label if level == "label" else finding.category
            result.per[key].wrong += 1
            result.misses.append(Miss("false", f"{key} ({finding.label})", text.text, finding.start, finding.end))
            alarmed = True
    if refused and not required and not unsure:
        result.texts += 1
        result.alarms += alarmed


def _judged(
    text: Text, finding: DetectedValue, required: list[Row], unsure: list[Row], refused: list[Row], level: Level
) -> bool:
    if any(min(row.end, finding.end) > max(row.start, finding.start) for row in unsure):
        return False
    if (unsure and not required) or not (required or refused):
        return False
    if level == "category":
        return finding.category in text.categories
    return finding.label in text.labels or (
        any(row.scope == "any" for row in refused) and finding.category in text.categories
    )


def _overlap(row: Row, finding: DetectedValue) -> bool:
    return min(row.end, finding.end) > max(row.start, finding.start)


def _names(row: Row, finding: DetectedValue, level: Level) -> bool:
    if level == "category":
        return finding.category == row.category
    return finding.label == row.label or (row.category == "secret" and finding.label in CATCH_ALL)
