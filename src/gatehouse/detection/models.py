"""Interfaces of the two model tiers. The embedded implementations are in `entities/` and `semantic/`. Implementations
block and use one thread. They run in a separate process, never on an event loop."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeAlias

from gatehouse.detection.findings import Finding

#: Entity types that every model of the entities tier recognises.
ENTITIES: Final = ("person", "organization", "location", "address", "date_of_birth")

#: The entities tier and the semantic tier, as named in the `detector_type` of a rule.
TierName: TypeAlias = Literal["ner", "llm"]


class TierFailed(Exception):
    """A tier failed. `tier` is `ner`, `llm`, `documents` or `regex`. `reason` is `timeout`, `overloaded`, `crashed` or
    `unavailable`; the pattern tier `regex` fails with `too_long`."""

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
        """The entity types that the model recognises, such as `person`, `organization` and `location`."""

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        """Return the findings of each text, in order.

        The findings of `ENTITIES` do not overlap. `source` and `entity_type` of a finding are the name of the entity
        type. `labels` are entity types to recognise in addition to `ENTITIES`; they do not change the findings of
        `ENTITIES`. Long texts are cut at ends of sentences. A text has the same findings alone and in a batch.

        Raises `LabelsUnknown` if the model does not recognise one of the labels.

        """


class Classifier(Protocol):
    """The semantic tier."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that have a trained head: `prompt_injection`, `jailbreak`, and the topics."""

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """Return for each text the score of every label, between 0.0 and 1.0. A trained head computes the score if the
        label has one. Otherwise the score is the similarity of the text to the words of the label (zero-shot). The
        score of a label does not depend on the other labels."""
