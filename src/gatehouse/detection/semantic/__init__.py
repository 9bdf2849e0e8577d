"""The semantic tier: classifies a text by its topic and its intent (docs/dlp-semantic.md).

The embedded model is in the package and needs nothing else. `SEMANTIC_MODEL_PATH` names another one: a folder with an
ONNX export of a sentence-transformers or sequence-classification model. Its labels come first, the embedded model
serves the rest. Letters that a text hides are a prompt injection whatever the model (`signs`).
"""

from pathlib import Path

from gatehouse.detection.models import Classifier
from gatehouse.detection.semantic.signs import Signed


def open_classifier(path: Path | None = None) -> Classifier:
    """The embedded classifier, or the one of `path` in front of it. Loads the models: call it in the process that runs
    them.

    Raises a `ModelUnusable` with a sentence for the operator.
    """
    from gatehouse.detection.semantic.embedded import EmbeddedClassifier  # noqa: PLC0415

    embedded = EmbeddedClassifier()
    if path is None:
        return Signed(embedded)
    from gatehouse.detection.semantic.foreign import open_foreign  # noqa: PLC0415

    return Signed(open_foreign(path, embedded))
