"""Errors of models that cannot be used, with advice for the operator."""

from pathlib import Path


class SemanticModelUnusable(Exception):
    """`SEMANTIC_MODEL_PATH` does not name a model that can run here. The base class of the others."""


class FileMissing(SemanticModelUnusable):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no {name}: it must hold an ONNX export (model.onnx or onnx/model.onnx), config.json and "
            "tokenizer.json"
        )


class BadSemanticModel(SemanticModelUnusable):
    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be loaded: {reason}")
