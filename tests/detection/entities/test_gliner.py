import json
import shutil
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from gatehouse.detection.entities import open_recognizer
from gatehouse.detection.entities.errors import BadModel, LibraryMissing, ModelUnusable, UnknownModel
from gatehouse.detection.findings import Finding

VOCABULARY = ["[UNK]", "<<ENT>>", "<<SEP>>", "person", "organization", "location", "address", "date", "of", "birth"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A span model in GLiNER's form that finds the words of its labels; `gliner/make.py` made it."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["<<ENT>>", "<<SEP>>"])
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    shutil.copy(Path(__file__).parent / "gliner" / "model.onnx", tmp_path)
    (tmp_path / "gliner_config.json").write_text(json.dumps({"max_width": 3, "span_mode": "markerV0"}))
    return tmp_path


def test_an_export_finds_what_its_model_finds(folder: Path) -> None:
    text = "😀 a person wrote to the location, on this date"
    (found,) = open_recognizer(folder).recognize([text])
    assert [(text[f.start : f.end], f.entity_type, f.source) for f in found] == [
        ("person", "person", "person"),
        ("location", "location", "location"),
        ("date", "date_of_birth", "date_of_birth"),
    ]
    assert found[0].score == pytest.approx(0.9933, abs=1e-3)


def test_an_export_names_its_entities(folder: Path) -> None:
    assert open_recognizer(folder).entities == ("person", "organization", "location", "address", "date_of_birth")


def test_a_long_text_is_read_to_its_end(folder: Path) -> None:
    text = "no names here. " * 400 + "a person"
    (found,) = open_recognizer(folder).recognize([text])
    assert [(f.start, f.end) for f in found] == [(len(text) - 6, len(text))]


def test_texts_without_words_have_no_names(folder: Path) -> None:
    assert open_recognizer(folder).recognize(["", " \n "]) == [[], []]


def test_without_an_export_the_library_is_asked_for(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    with pytest.raises(LibraryMissing, match="library gliner, which is not installed: pip install gliner, or export"):
        open_recognizer(folder)


def test_with_the_library_a_folder_without_export_is_read_by_it(
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
        "    def predict_entities(self, text, labels, *, threshold):\n"
        "        at = text.find('Ada')\n"
        "        return [{'start': at, 'end': at + 3, 'text': 'Ada', 'label': 'person', 'score': 0.9}]\n"
    )
    monkeypatch.syspath_prepend(library)
    try:
        assert open_recognizer(folder).recognize(["I met Ada"]) == [[Finding(6, 9, "person", 0.9, "person")]]
    finally:
        sys.modules.pop("gliner", None)


def test_a_token_model_cannot_run_from_its_export(folder: Path) -> None:
    shipped = Path(open_recognizer.__code__.co_filename).parent / "data" / "model.onnx"
    shutil.copy(shipped, folder / "model.onnx")
    with pytest.raises(BadModel, match="only span models can run from ONNX, and this one takes ids, shapes"):
        open_recognizer(folder)


def test_a_tokenizer_without_the_marks_is_refused(folder: Path) -> None:
    (folder / "gliner_config.json").write_text(json.dumps({"ent_token": "[ENT]"}))
    with pytest.raises(BadModel, match=r"tokenizer.json does not know \[ENT\]"):
        open_recognizer(folder)


def test_a_damaged_export_is_refused(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(BadModel, match="cannot be loaded"):
        open_recognizer(folder)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"gliner_config\.json.*config\.cfg and meta\.json") as refused:
        open_recognizer(tmp_path)
    assert isinstance(refused.value, ModelUnusable)
