"""Recognizers for the folder of a GLiNER model. They run the ONNX export of the model if the folder contains one.
Otherwise they use the library `gliner`.

GLiNER reads labels and text together: `<<ENT>> person <<ENT>> location <<SEP>> Ada ...`. It computes a score for each
sequence of up to `max_width` words and each label.
"""

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from gatehouse.detection.entities.choosing import own_name, without_overlaps
from gatehouse.detection.entities.errors import BadEntitiesModel, LibraryMissing
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import Recognizer
from gatehouse.detection.units import units

#: Labels that are searched for in every text, in the wording that GLiNER models recognize best.
LABELS: Final = ("person", "organization", "location", "address", "date of birth")
MIN_SCORE: Final = 0.5
#: Maximum additional labels of one run. Each label makes the run slower.
LABELS_AT_A_TIME: Final = 25
#: Maximum number of words of one run. Longer units are read in parts.
WINDOW_WORDS: Final = 200

_WORD: Final = re.compile(r"\w+(?:[-_]\w+)*|\S")
_EXPORTS: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_INPUTS: Final = frozenset(("input_ids", "attention_mask", "words_mask", "text_lengths", "span_idx", "span_mask"))


def open_gliner(path: Path) -> Recognizer:
    export = next((path / name for name in _EXPORTS if (path / name).is_file()), None)
    if export is not None and (path / "tokenizer.json").is_file():
        return GlinerExport(path, export)
    return GlinerLibrary(path)


class _Gliner:
    """The base class of both recognizers. Calls block."""

    entities: tuple[str, ...] = tuple(own_name(label) for label in LABELS)

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        return [self._read(text, labels) for text in texts]

    def _read(self, text: str, labels: Sequence[str]) -> list[Finding]:
        """Return the findings in a text. Findings of different additional labels may overlap, so that the label of one
        rule does not hide the finding of another rule."""
        findings: list[Finding] = []
        by_label: dict[str, list[Finding]] = {}
        words = [label.replace("_", " ") for label in labels]
        for start, end in units(text):
            unit = text[start:end]
            findings += _shifted(self._read_unit(unit, LABELS), start)
            for at in range(0, len(words), LABELS_AT_A_TIME):
                for finding in _shifted(self._read_unit(unit, words[at : at + LABELS_AT_A_TIME], nested=True), start):
                    by_label.setdefault(finding.source, []).append(finding)
        findings = without_overlaps(findings)
        for of_label in by_label.values():
            findings += without_overlaps(of_label)
        return sorted(findings, key=lambda finding: finding.start)

    def _read_unit(self, unit: str, labels: Sequence[str], *, nested: bool = False) -> list[Finding]:
        """Return the findings of a unit. If `nested` is true, findings of different labels may overlap."""
        raise NotImplementedError


def _shifted(findings: Iterable[Finding], offset: int) -> Iterator[Finding]:
    for finding in findings:
        name = own_name(finding.entity_type)
        yield Finding(offset + finding.start, offset + finding.end, name, finding.score, name)


class GlinerLibrary(_Gliner):
    def __init__(self, path: Path) -> None:
        try:
            gliner = importlib.import_module("gliner")
        except ImportError:
            way_out = "pip install gliner, or export the model to ONNX and put model.onnx and tokenizer.json next to it"
            raise LibraryMissing(path, "gliner", way_out) from None
        try:
            self._model: Any = gliner.GLiNER.from_pretrained(str(path), local_files_only=True)
        except Exception as fault:  # the library raises exceptions of many unrelated classes
            raise BadEntitiesModel(path, str(fault)) from fault

    def _read_unit(self, unit: str, labels: Sequence[str], *, nested: bool = False) -> list[Finding]:
        findings = self._model.predict_entities(
            unit, list(labels), threshold=MIN_SCORE, flat_ner=not nested, multi_label=nested
        )
        return [Finding(f["start"], f["end"], f["label"], float(f["score"]), f["label"]) for f in findings]


class GlinerExport(_Gliner):
    """Runs the ONNX export of a span model with onnxruntime on one thread."""

    def __init__(self, path: Path, export: Path) -> None:
        try:
            config = json.loads((path / "gliner_config.json").read_text(encoding="utf-8"))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            self._session = onnxruntime.InferenceSession(str(export), options, providers=["CPUExecutionProvider"])
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        except Exception as fault:  # onnxruntime and tokenizers raise the class `Exception` itself
            raise BadEntitiesModel(path, str(fault)) from fault
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        input_names = {model_input.name for model_input in self._session.get_inputs()}
        if input_names != _INPUTS:
            raise BadEntitiesModel(
                path, f"only span models can run from ONNX, but the inputs are {', '.join(sorted(input_names))}"
            )
        self._width = int(config.get("max_width", 12))
        self._mark, self._end = config.get("ent_token", "<<ENT>>"), config.get("sep_token", "<<SEP>>")
        for token in (self._mark, self._end):
            if self._tokenizer.token_to_id(token) is None:
                raise BadEntitiesModel(path, f"tokenizer.json does not contain the token {token}")

    def _read_unit(self, unit: str, labels: Sequence[str], *, nested: bool = False) -> list[Finding]:
        words = list(_WORD.finditer(unit))
        findings: list[Finding] = []
        for at in range(0, len(words), WINDOW_WORDS):
            findings.extend(self._read_words(words[at : at + WINDOW_WORDS], labels))
        return findings

    def _read_words(self, words: list[re.Match[str]], labels: Sequence[str]) -> list[Finding]:
        prompt = [*(word for label in labels for word in (self._mark, label)), self._end]
        encoding = self._tokenizer.encode([*prompt, *(word.group() for word in words)], is_pretokenized=True)
        size = len(words)
        firsts = np.arange(size)[:, None].repeat(self._width, axis=1)
        lasts = firsts + np.arange(self._width)
        (logits,) = self._session.run(
            ["logits"],
            {
                "input_ids": np.asarray([encoding.ids], np.int64),
                "attention_mask": np.asarray([encoding.attention_mask], np.int64),
                "words_mask": _words_mask(encoding.word_ids, len(prompt)),
                "text_lengths": np.asarray([[size]], np.int64),
                "span_idx": np.stack((firsts, lasts), axis=-1).reshape(1, -1, 2),
                "span_mask": (lasts < size).reshape(1, -1),
            },
        )
        scores = 1.0 / (1.0 + np.exp(-logits[0].astype(np.float64)))
        findings: list[Finding] = []
        for first, length, label in zip(*(scores > MIN_SCORE).nonzero(), strict=True):
            if first + length < size:
                name, sure = labels[label], float(scores[first, length, label])
                findings.append(Finding(words[first].start(), words[first + length].end(), name, sure, name))
        return findings


def _words_mask(word_ids: list[int | None], prompt_words: int) -> np.ndarray:
    """Return for each token the number of the word that begins with it, from 1. Other tokens have 0."""
    mask = np.zeros((1, len(word_ids)), np.int64)
    previous: int | None = None
    for place, word in enumerate(word_ids):
        if word is not None and word != previous and word >= prompt_words:
            mask[0, place] = word - prompt_words + 1
        previous = word
    return mask
