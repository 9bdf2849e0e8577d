"""The semantic tier: classifies a text by its topic and its intent (docs/dlp-semantic.md).

The embedded model is part of the package and needs nothing else. `SEMANTIC_MODEL_PATH` selects another model: it is the
path of a folder with an ONNX export of a sentence-transformers or sequence-classification model. The embedded model is
still used for labels that the other model does not have. A text with hidden letters is treated as prompt injection with
every model (`signs`).
"""

from pathlib import Path

from gatehouse.detection.models import Classifier
from gatehouse.detection.semantic.signs import SignClassifier


def open_classifier(path: Path | None = None) -> Classifier:
    """Load the models and return a classifier: the embedded model, or the model in the folder `path` with the embedded
    model for other labels. Call this function in the process that runs the models.

    Raises `SemanticModelUnusable` with a message for the operator.
    """
    from gatehouse.detection.semantic.embedded import EmbeddedClassifier  # noqa: PLC0415

    embedded = EmbeddedClassifier()
    if path is None:
        return SignClassifier(embedded)
    from gatehouse.detection.semantic.foreign import open_foreign  # noqa: PLC0415

    return SignClassifier(open_foreign(path, embedded))
