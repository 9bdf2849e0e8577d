"""Ordinary documents and requests of agents are not changed, except that labelled values in them are found."""

import pytest
from bench.dlp.ordinary import turns
from bench.dlp.ordinary.documents import document, documents
from bench.dlp.ordinary.measure import WORDS_GOAL, in_documents, in_turns, recall
from bench.dlp.ordinary.parts import DEVELOPMENT, PARTS

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher

MATCHER = Matcher(BUILT_IN)


@pytest.mark.parametrize("part", ["development", "held-out"])
def test_ordinary_documents_stay_as_they_are(part: str) -> None:
    words, cases = in_documents(MATCHER, documents(PARTS[part], 300, planted=False))
    # This many words contain one number whose check digits are right by chance.
    assert len(cases) <= words / WORDS_GOAL


@pytest.mark.parametrize("part", ["development", "held-out"])
def test_requests_of_agents_stay_as_they_are(part: str) -> None:
    count, cases = in_turns(MATCHER, turns.bodies(PARTS[part].tools, range(600)))
    assert count == 600
    assert cases == []


def test_values_with_strong_evidence_are_found_in_any_document() -> None:
    measured_recall = recall(MATCHER, documents(DEVELOPMENT, 300, planted=True))
    for label in ("credit_card", "iban", "ssn", "es_nif", "it_fiscal_code", "aws_access_key", "github_token"):
        assert measured_recall.planted[label] == measured_recall.matched[label] > 0


def test_a_seed_gives_the_same_document() -> None:
    assert document(DEVELOPMENT, 7, planted=True) == document(DEVELOPMENT, 7, planted=True)
