import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatehouse.detection.entities import open_recognizer
from gatehouse.detection.entities.errors import BadEntitiesModel, LibraryMissing
from gatehouse.detection.findings import Finding

#: The part of spaCy that the loader uses. The real library has several hundred megabytes.
LIBRARY = """
class Span:
    def __init__(self, start, end, label):
        self.start_char, self.end_char, self.label_ = start, end, label

class Doc:
    def __init__(self, text):
        known = {"Ada": "PERSON", "Oslo": "GPE", "Acme": "ORG"}
        self.ents = [Span(text.find(w), text.find(w) + len(w), k) for w, k in known.items() if w in text]

def load(path):
    if not (path / "vocab").is_dir():
        raise OSError("no vocab")
    return Doc
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vocab").mkdir()
    (tmp_path / "config.cfg").write_text("[nlp]\n")
    (tmp_path / "meta.json").write_text(json.dumps({"labels": {"ner": ["GPE", "LOC", "ORG", "PERSON", "WORK_OF_ART"]}}))
    return tmp_path


@pytest.fixture
def library(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path_factory.mktemp("site")
    (site / "spacy.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(site)
    yield
    sys.modules.pop("spacy", None)


@pytest.mark.usefixtures("library")
def test_the_labels_of_a_spacy_model_are_mapped_to_the_taxonomy(folder: Path) -> None:
    assert open_recognizer(folder).entities == ("location", "organization", "person", "work_of_art")


@pytest.mark.usefixtures("library")
def test_the_entities_of_a_spacy_model_are_findings_in_order(folder: Path) -> None:
    assert open_recognizer(folder).recognize(["From Oslo Ada wrote", "-"]) == [
        [Finding(5, 9, "location", 0.85, "location"), Finding(10, 13, "person", 0.85, "person")],
        [],
    ]


@pytest.mark.usefixtures("library")
def test_offsets_are_of_the_whole_text(folder: Path) -> None:
    text = "Nothing is in this long sentence that would be of any interest to those who look for names. Ada is."
    (result,) = open_recognizer(folder).recognize([text])
    assert [text[f.start : f.end] for f in result] == ["Ada"]


@pytest.mark.usefixtures("library")
def test_a_damaged_model_is_refused(folder: Path) -> None:
    (folder / "vocab").rmdir()
    with pytest.raises(BadEntitiesModel, match="no vocab"):
        open_recognizer(folder)


@pytest.mark.usefixtures("library")
def test_a_model_without_entities_is_refused(folder: Path) -> None:
    (folder / "meta.json").write_text(json.dumps({"labels": {"tagger": ["NN"]}}))
    with pytest.raises(BadEntitiesModel, match="recognises no entities"):
        open_recognizer(folder)


def test_without_the_library_the_error_says_what_to_install(folder: Path) -> None:
    with pytest.raises(LibraryMissing, match="needs the library spacy, which is not installed: pip install spacy"):
        open_recognizer(folder)
