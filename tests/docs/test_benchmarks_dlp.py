"""The comparison with other tools covers each engine, and evaluates findings by the labels of the texts."""

from pathlib import Path

import pytest
from bench.dlp.peers import judging, labels, page
from bench.dlp.peers.__main__ import LEAST_SCORES
from bench.dlp.peers.engines import ENGINES
from bench.dlp.peers.gitleaks import Rules
from bench.dlp.peers.install import PEERS, PYTHON_OF
from bench.dlp.rows import Row, Text

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES

RULES = """
[allowlist]
regexes = ['^allowed']

[[rules]]
id = "token"
regex = '''acme_([a-z0-9]{8})\\b'''
keywords = ["ACME"]
entropy = 2.0
[[rules.allowlists]]
regexTarget = "line"
regexes = ["example:"]

[[rules]]
id = "in-a-file"
path = '''\\.yaml$'''
regex = '''value'''
"""


def positive(start: int, end: int, label: str) -> Row:
    return Row(label, "pii", start, end, positive=True, loose=False, strong=True, scope=None)


def test_each_engine_has_labels_and_a_row() -> None:
    assert labels.BY_ENGINE.keys() == ENGINES.keys()
    assert page.ROWS.keys() == ENGINES.keys() | {f"{name}_surer" for name in LEAST_SCORES}
    assert PYTHON_OF.keys() <= ENGINES.keys()
    assert set(PYTHON_OF.values()) == PEERS.keys()
    assert page.HEADS.keys() == judging.COLUMNS.keys()


def test_labels_of_other_tools_are_labels_of_the_texts() -> None:
    assert set(labels.PRESIDIO.values()) <= labels.LABELS_OF_TEXTS
    assert not labels.PRESIDIO.keys() & labels.UNJUDGED
    assert labels.presidio(["US_SSN", "ES_NIF", "UUID"]) == {
        "US_SSN": ("ssn", "identifier"),
        "ES_NIF": ("national_id", "identifier"),
        "UUID": ("UUID", "identifier"),
    }


def test_a_type_without_a_label_stops_the_run() -> None:
    with pytest.raises(KeyError, match="BRAND_NEW"):
        labels.presidio(["BRAND_NEW"])


def test_each_type_of_ours_keeps_its_category_and_names_have_one() -> None:
    named = labels.gatehouse([*(pattern.entity_type for pattern in BUILT_IN), *ENTITIES])
    for pattern in BUILT_IN:
        assert named[pattern.entity_type][1] == pattern.category
    assert set(labels.NAMES) <= {label for label, _ in named.values()}


def test_claims_are_the_labels_that_an_engine_searches_for() -> None:
    assert labels.claims("gitleaks", ["secret"]) == {"secret"}
    assert labels.claims("presidio", ["US_SSN", "ES_NIF", "UUID"]) == {"ssn", "es_nif"}
    ours = labels.claims("gatehouse", [pattern.entity_type for pattern in BUILT_IN])
    assert {"secret", "ssn", "es_nif", "pl_pesel"} <= ours
    assert "person" not in ours


def test_labels_that_are_not_claimed_count_only_in_the_first_figure() -> None:
    rows = [positive(0, 3, "ssn"), positive(4, 7, "pl_pesel")]
    texts = {"one": Text("111 222", "", rows, labels={"ssn", "pl_pesel"}, categories={"pii"})}
    findings = {"one": [(0, 3, "US_SSN", 1.0)]}
    named, claims = labels.presidio(["US_SSN"]), labels.claims("presidio", ["US_SSN"])
    column = judging.COLUMNS["a_presidio"]
    assert judging.f1(texts, findings, named, column, claims) == (pytest.approx(2 / 3), 1.0)
    assert judging.f1(texts, findings, named, judging.COLUMNS["a_gitleaks"], claims) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ä acme_a1b2c3d4 acme_e5f6g7h8", ["a1b2c3d4", "e5f6g7h8"]),
        ("acme_aaaaaaaa", []),
        ("example: acme_a1b2c3d4", []),
        ("acme_allowed1", []),
        ("value", []),
    ],
    ids=["places in code points", "entropy", "the line is allowed", "the secret is allowed", "only in a file"],
)
def test_rules_of_gitleaks_are_followed(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    assert [text[start:end] for start, end, *_ in Rules(tmp_path / "rules.toml").find(text)] == expected
