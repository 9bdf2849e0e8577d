"""Values in published formats are found in their usual surroundings."""

import pytest
from bench.dlp.formats import everyday, keywords, named, persons, tokens
from bench.dlp.formats.making import Format, cases, from_template
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
FORMS = [form for module in (persons, everyday) for form in module.formats()]
#: Some of the many surroundings of secrets.
FORMS += [
    form._replace(around=form.around[::step])
    for module, step in ((tokens, 2), (named, 4), (keywords, 17))
    for form in module.formats()
]


@pytest.mark.parametrize("family", MIN_RECALL)
def test_values_in_published_formats_are_found(family: str) -> None:
    results = list(measured(MATCHER, [form for form in FORMS if form.family == family], cases_each=1))
    assert len(results) > 10
    assert sum(result.recall for result in results) / len(results) >= MIN_RECALL[family]


def test_a_seed_gives_the_same_values() -> None:
    form = Format("tokens", "any", from_template("{n:20}-{uuid}"), frozenset(), ("{}", "x = {}"))
    first = list(cases(form, 2))
    assert first == list(cases(form, 2))
    assert len({case.text for case in first}) == 4
    assert all(len(case.text[case.start : case.end]) == 57 for case in first)
