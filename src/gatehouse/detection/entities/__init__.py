"""The entities tier: people, organizations, places, addresses, dates of birth (docs/dlp-entities.md).

The embedded model is part of the package and needs nothing else. `NER_MODEL_PATH` selects another model: it is the path
of a folder with a GLiNER or spaCy model. Every model reads texts in units (`detection.units`), so that a stream has the
same findings as the complete text.
"""

from pathlib import Path

from gatehouse.detection.entities.errors import UnknownModel
from gatehouse.detection.entities.offered import GLINER, SPACY
from gatehouse.detection.models import Recognizer


def open_recognizer(path: Path | None = None) -> Recognizer:
    """Load a model and return its recognizer: the embedded model, or the model in the folder `path`. Call this function
    in the process that runs the model.

    Raises `EntitiesModelUnusable` with a message for the operator.
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
