"""Interfaces of the two model tiers. The embedded implementations are in `entities/` and `semantic/`. Both are
blocking, single-threaded code, run in a process of their own, never on an event loop."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias

from gatehouse.detection.findings import Finding

#: Entity types that every model of the entities tier recognises.
ENTITIES: Final = ("person", "organization", "location", "address", "date_of_birth")

#: The entities tier and the semantic tier, as named in the `detector_type` of a rule.
TierName: TypeAlias = Literal["ner", "llm"]


class TierFailed(Exception):
    """The failure of a tier. `tier` is `ner` or `llm`, `reason` one of `timeout`, `overloaded`, `crashed`,
    `unavailable`. The pattern tier, `regex`, fails with `too_long`."""

    def __init__(self, tier: str, reason: str) -> None:
        super().__init__(f"{tier}: {reason}")
        self.tier = tier
        self.reason = reason


class LabelsUnknown(Exception):
    """The model does not recognise a requested label."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(f"the model does not recognise {', '.join(labels)}")


def refuse_unknown(labels: Sequence[str], known: Sequence[str]) -> None:
    """Raise `LabelsUnknown` if a label is not in `known`."""
    if unknown := [label for label in labels if label not in known]:
        raise LabelsUnknown(unknown)


class Recognizer(Protocol):
    """The entities tier."""

    @property
    def entities(self) -> tuple[str, ...]:
        """The entity types it recognises: `person`, `organization`, `location`, ..."""

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """Return the findings of each text, in order; those of `ENTITIES` do not overlap. `source` and `entity_type`
        are the entity's name. `labels` are names to recognise in addition to `ENTITIES`; they do not change the
        findings of `ENTITIES`. Long texts are cut at sentences; a text gives the same findings alone and in a batch.

        Raises `LabelsUnknown` if the model does not recognise one of the labels.

        """


class Classifier(Protocol):
    """The semantic tier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels with a trained head: `prompt_injection`, `jailbreak`, and the topics."""

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """Return for each text the score of every label, 0.0 to 1.0: by a trained head if there is one, else zero-shot
        by similarity to the label's own words. The score of a label does not depend on the other labels."""
