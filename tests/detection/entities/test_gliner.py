import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.gliner import gliner_folder

from gatehouse.detection.entities import open_recognizer
from gatehouse.detection.entities.errors import BadEntitiesModel, EntitiesModelUnusable, LibraryMissing, UnknownModel
from gatehouse.detection.findings import Finding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return gliner_folder(tmp_path)


def test_an_export_has_the_same_findings_as_its_model(folder: Path) -> None:
    text = "😀 a person wrote to the location, on this date"
    (result,) = open_recognizer(folder).recognize([text])
    assert [(text[f.start : f.end], f.entity_type, f.source) for f in result] == [
        ("person", "person", "person"),
        ("location", "location", "location"),
        ("date", "date_of_birth", "date_of_birth"),
    ]
    assert result[0].score == pytest.approx(0.9933, abs=1e-3)


def test_an_export_finds_further_labels(folder: Path) -> None:
    text = "a person took a drug for the disease"
    model = open_recognizer(folder)
    (result,) = model.recognize([text], ["disease", "drug_name"])
    assert [(text[f.start : f.end], f.source) for f in result] == [
        ("person", "person"),
        ("drug", "drug_name"),
        ("disease", "disease"),
    ]
    assert [f.source for f in model.recognize([text])[0]] == ["person"]


def test_further_labels_are_read_separately_and_hide_no_findings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings of the standard labels and of each further label are kept, even if they overlap."""
    requests: list[list[str]] = []

    def surest(self: object, unit: str, labels: Sequence[str], *, nested: bool = False) -> list[Finding]:
        requests.append(list(labels))
        return [Finding(0, 4, label, 0.6 + number / 100, label) for number, label in enumerate(labels)]

    model = open_recognizer(folder)
    monkeypatch.setattr(type(model), "_read_unit", surest)
    labels = [f"kind_{number}" for number in range(30)]
    (result,) = model.recognize(["Anna"], labels)
    assert [len(question) for question in requests] == [5, 25, 5]
    assert {f.source for f in result} == {"date_of_birth", *labels}


def test_an_export_names_its_entities(folder: Path) -> None:
    assert open_recognizer(folder).entities == ("person", "organization", "location", "address", "date_of_birth")


def test_a_long_text_is_read_to_its_end(folder: Path) -> None:
    text = "no names here. " * 400 + "a person"
    (result,) = open_recognizer(folder).recognize([text])
    assert [(f.start, f.end) for f in result] == [(len(text) - 6, len(text))]


def test_texts_without_words_have_no_names(folder: Path) -> None:
    assert open_recognizer(folder).recognize(["", " \n "]) == [[], []]


def test_the_error_for_a_folder_without_an_export_names_the_library(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    with pytest.raises(LibraryMissing, match="library gliner, which is not installed: pip install gliner, or export"):
        open_recognizer(folder)


def test_the_library_reads_a_folder_without_an_export(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "model.onnx").unlink()
    library = tmp_path / "site"
    library.mkdir()
    (library / "gliner.py").write_text(
        "class GLiNER:\n"
        "    @classmethod\n"
        "    def from_pretrained(cls, path, *, local_files_only):\n"
        "        assert local_files_only\n"
        "        return cls()\n"
        "    def predict_entities(self, text, labels, *, threshold, flat_ner, multi_label):\n"
        "        if 'drug name' in labels:\n"
        "            assert multi_label and not flat_ner\n"
        "            return [{'start': 0, 'end': 5, 'text': 'I met', 'label': 'drug name', 'score': 0.8}]\n"
        "        assert flat_ner and not multi_label\n"
        "        at = text.find('Ada')\n"
        "        return [{'start': at, 'end': at + 3, 'text': 'Ada', 'label': 'person', 'score': 0.9}]\n"
    )
    monkeypatch.syspath_prepend(library)
    try:
        model = open_recognizer(folder)
        assert model.recognize(["I met Ada"]) == [[Finding(6, 9, "person", 0.9, "person")]]
        assert model.recognize(["I met Ada"], ["drug_name"]) == [
            [Finding(0, 5, "drug_name", 0.8, "drug_name"), Finding(6, 9, "person", 0.9, "person")]
        ]
    finally:
        sys.modules.pop("gliner", None)


def test_a_token_model_cannot_run_from_its_export(folder: Path) -> None:
    shipped = Path(open_recognizer.__code__.co_filename).parent / "data" / "model.onnx"
    shutil.copy(shipped, folder / "model.onnx")
    with pytest.raises(BadEntitiesModel, match="only span models can run from ONNX, but the inputs are ids, shapes"):
        open_recognizer(folder)


def test_a_tokenizer_without_the_marks_is_refused(folder: Path) -> None:
    (folder / "gliner_config.json").write_text(json.dumps({"ent_token": "[ENT]"}))
    with pytest.raises(BadEntitiesModel, match=r"tokenizer.json does not contain the token \[ENT\]"):
        open_recognizer(folder)


def test_a_damaged_export_is_refused(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BadEntitiesModel, match="cannot be loaded"):
        open_recognizer(folder)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"gliner_config\.json.*config\.cfg and meta\.json") as refused:
        open_recognizer(tmp_path)
    assert isinstance(refused.value, EntitiesModelUnusable)
