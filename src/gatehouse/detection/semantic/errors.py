"""Why a model cannot be used; said to the operator at start, with the way out."""

from pathlib import Path


class SemanticModelUnusable(Exception):
    """The root: `SEMANTIC_MODEL_PATH` does not name a model that can run here."""


class FileMissing(SemanticModelUnusable):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no {name}: it must hold an ONNX export (model.onnx or onnx/model.onnx), config.json and "
            "tokenizer.json"
        )


class BadSemanticModel(SemanticModelUnusable):
    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be loaded: {reason}")
