"""Measures the recall of published formats: `python -m bench.dlp.formats.measure [--family tokens] [--all] [--show
NAME]`.

It prints a table of the formats below the goal, or of all formats. A finding is right if it reaches its threshold,
overlaps the value, and has an expected entity type or category.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from bench.dlp.formats import everyday, keywords, named, persons, tokens
from bench.dlp.formats.generation import Case, Format, cases

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher

GOAL: Final = 0.95
_PATTERNS: Final = {pattern.id: pattern for pattern in BUILT_IN}


class Result(NamedTuple):
    value_format: Format
    total: int
    missed: list[Case]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.total


def formats() -> Iterator[Format]:
    for module in (tokens, named, keywords, persons, everyday):
        yield from module.formats()


def names(matcher: Matcher, case: Case) -> set[str]:
    """Return the entity types and categories of the findings that overlap the value."""
    return {
        name
        for finding in matcher.scan(case.text)
        if finding.start < case.end
        and case.start < finding.end
        and finding.score >= _PATTERNS[finding.source].threshold
        for name in (finding.entity_type, _PATTERNS[finding.source].category)
    }


def measured(matcher: Matcher, selected: Iterable[Format], cases_per_context: int, seed: int = 0) -> Iterator[Result]:
    for value_format in selected:
        tried = list(cases(value_format, cases_per_context, seed))
        yield Result(
            value_format, len(tried), [case for case in tried if value_format.expected.isdisjoint(names(matcher, case))]
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family")
    parser.add_argument("--each", type=int, default=3, help="values for each context")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="the formats that reach the goal, too")
    parser.add_argument("--show", help="print what is missed of this format, or of `all`")
    arguments = parser.parse_args()
    selected = [value_format for value_format in formats() if arguments.family in {None, value_format.family}]
    totals: dict[str, list[float]] = {}
    matcher = Matcher(BUILT_IN)
    for result in measured(matcher, selected, arguments.each, arguments.seed):
        totals.setdefault(result.value_format.family, []).append(result.recall)
        if arguments.all or result.recall < GOAL:
            print(f"{result.value_format.family:14} {result.value_format.name:44} {result.recall:.2f}")
        if arguments.show in {"all", result.value_format.name}:
            for case in result.missed:
                print(f"    {case.text[:160]!r}  {sorted(names(matcher, case))}")
    for family, recalls in totals.items():
        reached = sum(recall >= GOAL for recall in recalls)
        print(f"{family}: {len(recalls)} formats, {reached} at {GOAL} or above, mean {sum(recalls) / len(recalls):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
