"""Tests that values in published formats are found in their usual contexts."""

import pytest
from bench.dlp.formats import everyday, keywords, named, persons, tokens
from bench.dlp.formats.generation import Format, cases, from_template
from bench.dlp.formats.measure import measured

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher

MATCHER = Matcher(BUILT_IN)
#: The minimum share of found values for each family of formats.
MIN_RECALL = {
    "tokens": 0.99,
    "named": 0.98,
    "keywords": 0.95,
    "persons": 0.98,
    "licences": 0.99,
    "phones": 0.99,
    "dates": 0.94,
    "cards": 0.94,
    "accounts": 1.0,
    "network": 1.0,
}
FORMATS = [value_format for module in (persons, everyday) for value_format in module.formats()]
#: Secrets have many contexts, of which some are tested.
FORMATS += [
    value_format._replace(contexts=value_format.contexts[::step])
    for module, step in ((tokens, 2), (named, 4), (keywords, 17))
    for value_format in module.formats()
]


@pytest.mark.parametrize("family", MIN_RECALL)
def test_values_in_published_formats_are_found(family: str) -> None:
    results = list(
        measured(
            MATCHER, [value_format for value_format in FORMATS if value_format.family == family], cases_per_context=1
        )
    )
    assert len(results) > 10
    assert sum(result.recall for result in results) / len(results) >= MIN_RECALL[family]


def test_a_seed_gives_the_same_values() -> None:
    value_format = Format("tokens", "any", from_template("{n:20}-{uuid}"), frozenset(), ("{}", "x = {}"))
    first = list(cases(value_format, 2))
    assert first == list(cases(value_format, 2))
    assert len({case.text for case in first}) == 4
    assert all(len(case.text[case.start : case.end]) == 57 for case in first)
