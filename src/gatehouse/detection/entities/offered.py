"""Which names a `ner` rule may look for: it depends on the model that `NER_MODEL_PATH` names."""

import json
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from gatehouse.detection.entities.choosing import own_name
from gatehouse.detection.models import ENTITIES

GLINER: Final = "gliner_config.json"
SPACY: Final = "meta.json"


class Recognisers(NamedTuple):
    """`names` are known; with `takes_any` the model looks for whatever else it is asked for (GLiNER)."""

    names: tuple[str, ...] = ENTITIES
    takes_any: bool = False

    def refusal(self, name: str) -> str | None:
        """Why a rule cannot look for this name, with the way out; None where it can."""
        if self.takes_any or name in self.names:
            return None
        return (
            f"{name!r} is not recognised: known are {', '.join(self.names)}. Other names need a GLiNER model:"
            " set NER_MODEL_PATH to its folder"
        )


@cache
def offered(model: Path | None) -> Recognisers:
    """By the model's folder. The model itself is not loaded."""
    if model is None:
        return Recognisers()
    if (model / GLINER).is_file():
        return Recognisers(takes_any=True)
    return Recognisers(tuple(dict.fromkeys((*ENTITIES, *spacy_names(model)))))


def spacy_names(folder: Path) -> tuple[str, ...]:
    """What a spaCy model's `meta.json` lists for its recognisers; nothing where it cannot be read."""
    try:
        labels = json.loads((folder / SPACY).read_text(encoding="utf-8")).get("labels", {})
    except (OSError, ValueError):
        return ()
    native = [label for part in ("ner", "entity_ruler", "span_ruler") for label in labels.get(part, ())]
    return tuple(dict.fromkeys(own_name(label) for label in native))
