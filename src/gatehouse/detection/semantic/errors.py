"""Errors of models that cannot be used, with advice for the operator."""

from pathlib import Path


class SemanticModelUnusable(Exception):
    """The model at `SEMANTIC_MODEL_PATH` cannot be used. Base class of the other errors."""


class FileMissing(SemanticModelUnusable):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no {name}: the folder must contain an ONNX export (model.onnx or onnx/model.onnx), "
            "config.json and tokenizer.json"
        )


class BadSemanticModel(SemanticModelUnusable):
    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be loaded: {reason}")
