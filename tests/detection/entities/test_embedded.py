from itertools import pairwise
from pathlib import Path

import pytest

from gatehouse.detection.entities import open_recognizer
from gatehouse.detection.entities.embedded import DATA
from gatehouse.detection.models import Recognizer
from gatehouse.detection.units import units

LETTER = (
    "Yesterday Maria Keller of the Harbour Insurance Group wrote to our office in Rotterdam about a claim. "
    "She lives at 221b Baker Street and was born on May 5, 1971, as far as we can tell from her passport. "
    "Please call Johannes Okafor at Microsoft in Seattle, and tell him what you have found out about it."
)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return open_recognizer()


def entities_in(recognizer: Recognizer, text: str) -> list[tuple[str, str]]:
    (findings,) = recognizer.recognize([text])
    return [(text[finding.start : finding.end], finding.entity_type) for finding in findings]


def test_the_embedded_model_lists_its_entities(recognizer: Recognizer) -> None:
    assert recognizer.entities == ("person", "organization", "location", "address", "date_of_birth")


def test_the_names_in_a_letter_are_recognised(recognizer: Recognizer) -> None:
    assert entities_in(recognizer, LETTER) == [
        ("Maria Keller", "person"),
        ("Harbour Insurance Group", "organization"),
        ("Rotterdam", "location"),
        ("221b Baker Street", "address"),
        ("May 5, 1971", "date_of_birth"),
        ("Johannes Okafor", "person"),
        ("Microsoft", "organization"),
        ("Seattle", "location"),
    ]


def test_source_and_type_are_the_recognisers_name(recognizer: Recognizer) -> None:
    (findings,) = recognizer.recognize([LETTER])
    assert [finding.source for finding in findings] == [finding.entity_type for finding in findings]
    assert all(0.45 <= finding.score <= 1.0 for finding in findings)


def test_findings_are_in_order_and_do_not_overlap(recognizer: Recognizer) -> None:
    (findings,) = recognizer.recognize([LETTER * 3])
    assert all(a.end <= b.start for a, b in pairwise(findings))


def test_a_text_gives_the_same_findings_alone_and_in_a_batch(recognizer: Recognizer) -> None:
    texts = [LETTER, "Ada", "", "ANNA MEETS PETER IN PARIS", "x" * 5000, LETTER[50:]]
    assert recognizer.recognize(texts) == [recognizer.recognize([text])[0] for text in texts]


def test_names_in_small_letters_are_found(recognizer: Recognizer) -> None:
    assert ("barack obama", "person") in entities_in(recognizer, "i saw barack obama in london")
    assert ("london", "location") in entities_in(recognizer, "i saw barack obama in london")


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("got tickets for coldplay", "coldplay", "organization"),
        ("is netflix down again?", "netflix", "organization"),
        ("read it on the bbc", "bbc", "organization"),
        ("Muse were great last night", "Muse", "organization"),
    ],
)
def test_known_names_are_found_with_little_evidence(recognizer: Recognizer, text: str, name: str, kind: str) -> None:
    assert entities_in(recognizer, text) == [(name, kind)]


@pytest.mark.parametrize(
    "frame",
    [
        '{"id": 4711, "status": "ok", "text": "%s", "tags": ["a1", "b2"]}',
        '[{"type": "tool_result", "content": "exit code 0\\n%s\\n2 rows"}]',
        "- id: 17\n  note: %s\n  state: open\n",
        "| 12 | %s | open |",
    ],
)
def test_names_are_found_within_json_results_and_tables(recognizer: Recognizer, frame: str) -> None:
    text = frame % "Barack Obama met Maria Keller in Rotterdam"
    names = [("Barack Obama", "person"), ("Maria Keller", "person"), ("Rotterdam", "location")]
    assert entities_in(recognizer, text) == names


def test_an_address_next_to_a_name_does_not_hide_the_name(recognizer: Recognizer) -> None:
    text = "See https://example.com/maria-keller first, then call Johannes Okafor or mail jo@example.com."
    assert entities_in(recognizer, text) == [("Johannes Okafor", "person")]


def test_offsets_count_code_points(recognizer: Recognizer) -> None:
    assert ("Maria Keller", "person") in entities_in(recognizer, "😀😀 é Maria Keller wrote to us")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t ",
        "12345 67.8 %% --- ///",
        "https://www.example.com/Maria-Keller/Paris",
        "Maria.Keller@example.com",
        "RT @MariaKeller",
        "the quick brown fox jumps over the lazy dog",
        "for i in range(10): print(i)",
        "it was time to target the orange boots, who had visa and apple",
        "# Getting Started",
        "### Known Issues and Limitations",
        "Upgrade from Version 2.3.1 to 3.0.0",
        "Python 3.12.4 and Node 20.11.0 LTS",
        "SELECT Name, City FROM Customers WHERE Id = 12",
        "public class OrderService implements Service {",
        "Error: Connection Refused at Line 42",
        "| Name | Role | Status |",
        "\u0000\ufffd\ud7ff",
    ],
)
def test_texts_without_names_give_no_findings(recognizer: Recognizer, text: str) -> None:
    assert entities_in(recognizer, text) == []


@pytest.mark.parametrize("text", ["ا" * 3000, "京" * 2000, "a" * 20_000, "Ａ" * 1000, "- " * 5000])  # noqa: RUF001
def test_any_script_and_length_is_read(recognizer: Recognizer, text: str) -> None:
    (findings,) = recognizer.recognize([text])
    assert all(0 <= finding.start < finding.end <= len(text) for finding in findings)


@pytest.mark.parametrize("at", range(0, len(LETTER) + 1, 15))
def test_completed_units_of_a_stream_give_the_same_as_the_whole_text(recognizer: Recognizer, at: int) -> None:
    done = max((end for _, end in units(LETTER[:at], final=False)), default=0)
    (all_findings,) = recognizer.recognize([LETTER])
    (begun,) = recognizer.recognize([LETTER[:done]])
    assert begun == [finding for finding in all_findings if finding.end <= done]


def test_units_are_read_one_by_one(recognizer: Recognizer) -> None:
    (all_findings,) = recognizer.recognize([LETTER])
    for start, end in units(LETTER):
        (part,) = recognizer.recognize([LETTER[start:end]])
        assert [(f.start + start, f.end + start) for f in part] == [
            (f.start, f.end) for f in all_findings if start <= f.start < end
        ]


def test_the_package_carries_the_model_its_card_and_its_licences() -> None:
    assert {path.name for path in DATA.iterdir()} == {"model.onnx", "tokenizer.json", "MODEL_CARD.md", "ATTRIBUTION.md"}
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 26_000_000


def test_the_model_needs_no_network_and_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert entities_in(open_recognizer(), "Maria Keller") == [("Maria Keller", "person")]
    assert not list(tmp_path.iterdir())
