"""The semantic tier: classifies a text by its topic and its intent (docs/dlp-semantic.md).

The embedded model is in the package and needs nothing else. `SEMANTIC_MODEL_PATH` names another one: a folder with an
ONNX export of a sentence-transformers or sequence-classification model. The embedded
model serves the labels that this one does not have. A text with hidden letters is a prompt injection for every model
(`signs`).
"""

from pathlib import Path

from gatehouse.detection.models import Classifier
from gatehouse.detection.semantic.signs import Signed


def open_classifier(path: Path | None = None) -> Classifier:
    """Return the embedded classifier, or the model of `path` with the embedded one for other labels. Loads the models:
    call it in the process that runs them.

    Raises a `ModelUnusable` with a message for the operator.
    """
    from gatehouse.detection.semantic.embedded import EmbeddedClassifier  # noqa: PLC0415

    embedded = EmbeddedClassifier()
    if path is None:
        return Signed(embedded)
    from gatehouse.detection.semantic.foreign import open_foreign  # noqa: PLC0415

    return Signed(open_foreign(path, embedded))
