"""Returns the labels that a `ner` rule may have. They depend on the model at `NER_MODEL_PATH`."""

import json
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from gatehouse.detection.entities.choosing import own_name
from gatehouse.detection.models import ENTITIES

GLINER: Final = "gliner_config.json"
SPACY: Final = "meta.json"


class Recognisers(NamedTuple):
    """The labels that a model recognizes. `names` are always recognized. If `takes_any` is true, the model recognizes
    every other label too (GLiNER)."""

    names: tuple[str, ...] = ENTITIES
    takes_any: bool = False

    def refusal(self, name: str) -> str | None:
        """Return None if a rule can have this label, otherwise an error message that says why not and what to do."""
        if self.takes_any or name in self.names:
            return None
        return (
            f"{name!r} is not recognised: known are {', '.join(self.names)}. Other names need a GLiNER model:"
            " set NER_MODEL_PATH to its folder"
        )


@cache
def offered(model: Path | None) -> Recognisers:
    """Return the labels of the model in a folder, or of the embedded model, without loading the model."""
    if model is None:
        return Recognisers()
    if (model / GLINER).is_file():
        return Recognisers(takes_any=True)
    return Recognisers(tuple(dict.fromkeys((*ENTITIES, *spacy_names(model)))))


def spacy_names(folder: Path) -> tuple[str, ...]:
    """Return the labels in a spaCy model's `meta.json`, or an empty tuple if the file cannot be read."""
    try:
        labels = json.loads((folder / SPACY).read_text(encoding="utf-8")).get("labels", {})
    except (OSError, ValueError):
        return ()
    native = [label for part in ("ner", "entity_ruler", "span_ruler") for label in labels.get(part, ())]
    return tuple(dict.fromkeys(own_name(label) for label in native))
