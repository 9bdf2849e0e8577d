"""Errors of models that cannot be used, with advice for the operator."""

from pathlib import Path


class EntitiesModelUnusable(Exception):
    """The model at `NER_MODEL_PATH` cannot be used. Base class of the other errors."""


class UnknownModel(EntitiesModelUnusable):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} contains no model for named entities: a GLiNER folder must contain gliner_config.json, a spaCy "
            "folder must contain config.cfg and meta.json"
        )


class LibraryMissing(EntitiesModelUnusable):
    def __init__(self, path: Path, library: str, way_out: str) -> None:
        super().__init__(f"{path} needs the library {library}, which is not installed: {way_out}")


class BadEntitiesModel(EntitiesModelUnusable):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be loaded: {reason}")
