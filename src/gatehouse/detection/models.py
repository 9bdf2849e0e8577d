"""What the two model tiers can do. The embedded defaults are in `entities/` and `semantic/`; both are plain blocking
code of one thread, run in a process of their own, never on an event loop."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias

from gatehouse.detection.findings import Finding

#: What the entities tier recognises, whichever model is behind it.
ENTITIES: Final = ("person", "organization", "location", "address", "date_of_birth")

#: The entities and the semantic tier, by the words of a rule's `detector_type`.
TierName: TypeAlias = Literal["ner", "llm"]


class TierFailed(Exception):
    """`tier` is `ner` or `llm`, `reason` one of `timeout`, `overloaded`, `crashed`, `unavailable`. The pattern
    tier, `regex`, fails with `too_long`."""

    def __init__(self, tier: str, reason: str) -> None:
        super().__init__(f"{tier}: {reason}")
        self.tier = tier
        self.reason = reason


class LabelsUnknown(Exception):
    """The model does not recognise what it is asked for."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(f"the model does not recognise {', '.join(labels)}")


def refuse_unknown(labels: Sequence[str], known: Sequence[str]) -> None:
    """Raises `LabelsUnknown`."""
    if unknown := [label for label in labels if label not in known]:
        raise LabelsUnknown(unknown)


class Recognizer(Protocol):
    """The entities tier."""

    @property
    def entities(self) -> tuple[str, ...]:
        """Names of what it recognises: `person`, `organization`, `location`, ..."""

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """For each text its findings in order; those of `ENTITIES` do not overlap. `source` and `entity_type` are the
        entity's name. `labels` are names to look for besides `ENTITIES`: they change nothing about the findings of
        `ENTITIES`. Long texts are cut at sentences; a text gives the same findings alone and in a batch.

        Raises `LabelsUnknown` where the model does not recognise one of the labels."""


class Classifier(Protocol):
    """The semantic tier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels it has a trained head for: `prompt_injection`, `jailbreak`, and the topics."""

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """For each text the score of every label asked for, 0.0 to 1.0: by a trained head where there is one, else
        zero-shot by similarity to the label's own words. Scores of labels do not depend on each other."""
