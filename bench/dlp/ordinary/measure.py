"""Measures two properties of the built-in patterns: how often they redact text in documents and agent requests without
sensitive values, and which share of labelled values they find.

    .venv/bin/python -m bench.dlp.ordinary.measure
    .venv/bin/python -m bench.dlp.ordinary.measure --part held-out --json figures.json
    .venv/bin/python -m bench.dlp.ordinary.measure --show ssn

A false redaction is a finding that covers no sensitive value. A finding is counted only if it reaches its threshold, its
score is at least `CERTAIN_SCORE`, and its pattern does more than log. Overlapping findings are counted once.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.dlp.ordinary import turns
from bench.dlp.ordinary.documents import Document, TemplateSet, documents
from bench.dlp.ordinary.parts import PARTS

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.findings import Finding
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.pattern import CERTAIN_SCORE
from gatehouse.engine.conversation.slots import Slot, slots

#: Goals: at most one false redaction in this number of words of ordinary documents, and in this number of agents'
#: turns.
WORDS_GOAL: Final = 10_000
TURNS_GOAL: Final = 1_000
_WORD: Final = re.compile(r"\w+")
_REDACTING_PATTERNS: Final = {pattern.id: pattern for pattern in BUILT_IN if pattern.action != "log_only"}


class Redaction(NamedTuple):
    source: str
    entity_type: str
    start: int
    end: int


class Case(NamedTuple):
    where: str
    source: str
    before: str
    value: str


def redactions(matcher: Matcher, text: str, *, json_escapes: bool = False) -> list[Redaction]:
    """Return the redactions in `text`, in order."""
    return [
        Redaction(finding.source, finding.entity_type, finding.start, finding.end)
        for finding in matcher.scan(text, json_escapes=json_escapes)
        if _is_redaction(finding)
    ]


def _is_redaction(finding: Finding) -> bool:
    pattern = _REDACTING_PATTERNS.get(finding.source)
    return pattern is not None and finding.score >= max(pattern.threshold, CERTAIN_SCORE)


def false_ones(where: str, text: str, redactions_made: Iterable[Redaction]) -> list[Case]:
    cases: list[Case] = []
    end = 0
    for item in redactions_made:
        if item.start >= end:
            before = text[max(0, item.start - 40) : item.start]
            cases.append(Case(where, item.source, before, text[item.start : item.end]))
        end = max(end, item.end)
    return cases


def in_documents(matcher: Matcher, made: Iterable[Document]) -> tuple[int, list[Case]]:
    """Return the number of words, and the false redactions."""
    words, cases = 0, []
    for item in made:
        words += sum(1 for _ in _WORD.finditer(item.text))
        cases += false_ones(item.kind, item.text, redactions(matcher, item.text))
    return words, cases


def in_turns(matcher: Matcher, made: Iterable[tuple[str, dict[str, Any]]]) -> tuple[int, list[Case]]:
    """Return the number of turns, and the false redactions."""
    count, cases = 0, []
    for name, body in made:
        count += 1
        for slot in slots(body):
            if isinstance(slot, Slot):
                cases += false_ones(name, slot.text, redactions(matcher, slot.text, json_escapes=slot.json_text))
    return count, cases


class Recall(NamedTuple):
    """The recall of labelled values. `planted` and `matched` count values by label. `instead` counts by label the wrong
    findings at the place of a value, and `nothing` if there was none. `beside` are the redactions in the same documents
    that overlap no labelled value."""

    planted: Counter[str]
    matched: Counter[str]
    instead: dict[str, Counter[str]]
    beside: list[Case]
    misses: list[Case]


def recall(matcher: Matcher, made: Iterable[Document]) -> Recall:
    result = Recall(Counter(), Counter(), {}, [], [])
    for item in made:
        redactions_made = redactions(matcher, item.text)
        for start, end, planted in item.spans:
            result.planted[planted.label] += 1
            here = {one.entity_type for one in redactions_made if one.start < end and start < one.end}
            if here.isdisjoint(planted.entity_types):
                result.instead.setdefault(planted.label, Counter()).update(here or {"nothing"})
                before = item.text[max(0, start - 40) : start]
                result.misses.append(Case(item.kind, planted.label, before, item.text[start:end]))
            else:
                result.matched[planted.label] += 1
        outside = [
            one
            for one in redactions_made
            if not any(one.start < end and start < one.end for start, end, _ in item.spans)
        ]
        result.beside.extend(false_ones(item.kind, item.text, outside))
    return result


def figures(matcher: Matcher, part: TemplateSet, document_count: int, turn_count: int, planted: int) -> dict[str, Any]:
    """Return all figures of a part, in the form of the JSON file, and the cases."""
    words, in_text = in_documents(matcher, documents(part, document_count, planted=False))
    seeds = range(part.first_seed, part.first_seed + turn_count)
    count, in_tools = in_turns(matcher, turns.bodies(part.tools, seeds))
    labelled = recall(matcher, documents(part, planted, planted=True))
    return {
        "words": words,
        "false_in_documents": len(in_text),
        "turns": count,
        "false_in_turns": len(in_tools),
        "by_pattern": Counter(case.source for case in in_text + in_tools).most_common(),
        "labels": {
            label: {
                "asked": planted_count,
                "found": labelled.matched[label],
                "instead": dict(labelled.instead.get(label, ())),
            }
            for label, planted_count in sorted(labelled.planted.items())
        },
        "beside": len(labelled.beside),
        "cases": in_text + in_tools + labelled.misses,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="development")
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=4_000)
    parser.add_argument("--planted", type=int, default=2_000)
    parser.add_argument(
        "--show", help="print the false redactions of this pattern and the missed values of this label, or `all`"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    measured = figures(
        Matcher(BUILT_IN), PARTS[arguments.part], arguments.documents, arguments.turns, arguments.planted
    )
    cases = measured.pop("cases")
    print(
        f"documents: {measured['false_in_documents']} false redactions in {measured['words']} words"
        f" (goal: at most one in {WORDS_GOAL})"
    )
    print(f"agent turns: {measured['false_in_turns']} in {measured['turns']} (goal: at most one in {TURNS_GOAL})")
    for source, times in measured["by_pattern"]:
        print(f"  {source:26s} {times}")
    total = sum(counts["asked"] for counts in measured["labels"].values())
    right = sum(counts["found"] for counts in measured["labels"].values())
    print(f"labelled values: {right} of {total} found, {measured['beside']} other false redactions in these documents")
    for label, counts in measured["labels"].items():
        print(f"  {label:20s} {counts['found']:4d} of {counts['asked']:4d}  {counts['instead'] or ''}")
    if arguments.show:
        for case in cases:
            if arguments.show in {"all", case.source}:
                print(f"{case.where} | {case.source} | {case.before!r} >>{case.value!r}<<")
    if arguments.json:
        known = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
        arguments.json.write_text(json.dumps(known | {arguments.part: measured}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
