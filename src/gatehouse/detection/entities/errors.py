"""Errors of models that cannot be used, with advice for the operator."""

from pathlib import Path


class EntitiesModelUnusable(Exception):
    """`NER_MODEL_PATH` does not name a model that can run here. The base class of the others."""


class UnknownModel(EntitiesModelUnusable):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is no model of named entities: a GLiNER folder has gliner_config.json, a spaCy folder has "
            "config.cfg and meta.json"
        )


class LibraryMissing(EntitiesModelUnusable):
    def __init__(self, path: Path, library: str, way_out: str) -> None:
        super().__init__(f"{path} needs the library {library}, which is not installed: {way_out}")


class BadEntitiesModel(EntitiesModelUnusable):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be loaded: {reason}")
