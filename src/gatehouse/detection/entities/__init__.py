"""The entities tier: people, organizations, places, addresses, dates of birth (docs/dlp-entities.md).

The embedded model is in the package and needs nothing else. `NER_MODEL_PATH` names another one: a folder with a GLiNER
or a spaCy model. Every model reads texts in units (`detection.units`), so that a stream and the whole text have the
same findings.
"""

from pathlib import Path

from gatehouse.detection.entities.errors import UnknownModel
from gatehouse.detection.entities.offered import GLINER, SPACY
from gatehouse.detection.models import Recognizer


def open_recognizer(path: Path | None = None) -> Recognizer:
    """Return the embedded recognizer, or the one of `path`. Loads the model: call it in the process that runs it.

    Raises a `ModelUnusable` with a message for the operator.
    """
    if path is None:
        from gatehouse.detection.entities.embedded import EmbeddedRecognizer  # noqa: PLC0415

        return EmbeddedRecognizer()
    if (path / GLINER).is_file():
        from gatehouse.detection.entities.gliner import open_gliner  # noqa: PLC0415

        return open_gliner(path)
    if (path / SPACY).is_file() and (path / "config.cfg").is_file():
        from gatehouse.detection.entities.spacy_model import SpacyRecognizer  # noqa: PLC0415

        return SpacyRecognizer(path)
    raise UnknownModel(path)
