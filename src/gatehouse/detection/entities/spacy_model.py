"""The recognizer for the folder of a spaCy model."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gatehouse.detection.entities.choosing import own_name, without_overlaps
from gatehouse.detection.entities.errors import BadEntitiesModel, LibraryMissing
from gatehouse.detection.entities.offered import spacy_names
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import refuse_unknown
from gatehouse.detection.units import units

#: The score of all findings. spaCy's statistical recognizers compute no scores.
SCORE: Final = 0.85


class SpacyRecognizer:
    """Recognizes entities with a spaCy model. Calls block and use one thread. It recognizes the labels that `meta.json`
    lists for `ner`, `entity_ruler` and `span_ruler`."""

    def __init__(self, path: Path) -> None:
        try:
            spacy = importlib.import_module("spacy")
        except ImportError:
            raise LibraryMissing(path, "spacy", "pip install spacy, in the release that the model names") from None
        try:
            self._model: Any = spacy.load(path)
        except (OSError, ValueError, ImportError) as fault:
            raise BadEntitiesModel(path, str(fault)) from fault
        self._entities = spacy_names(path)
        if not self._entities:
            raise BadEntitiesModel(path, "it recognises no entities: meta.json names no labels of ner or entity_ruler")

    @property
    def entities(self) -> tuple[str, ...]:
        return self._entities

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        refuse_unknown(labels, self._entities)
        return [self._read(text) for text in texts]

    def _read(self, text: str) -> list[Finding]:
        findings: list[Finding] = []
        for start, end in units(text):
            for entity in self._model(text[start:end]).ents:
                name = own_name(entity.label_)
                findings.append(Finding(start + entity.start_char, start + entity.end_char, name, SCORE, name))
        return without_overlaps(findings)
