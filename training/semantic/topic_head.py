"""Trains the head for topics. Its classes are 150 intents and a class for none of them. At run time, the intents are
summed up to ten domains."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gatehouse.detection.semantic.embedded import OUT_OF_SCOPE
from training.semantic.fit import Array, Fit, Recipe, Windows, arrays
from training.semantic.sets import rows
from training.semantic.windowed import Reader

RECIPE = Recipe("softmax", hidden=192, buckets=2**12, epochs=25, rate=5e-3, dropout=0.5)
NAME = "topics"
#: The domains of CLINC, with descriptive names.
LABELS: Final = {
    "auto_and_commute": "cars_and_commuting",
    "banking": "banking",
    "credit_cards": "credit_cards",
    "home": "home_and_lists",
    "kitchen_and_dining": "kitchen_and_dining",
    "meta": "assistant_settings",
    "small_talk": "small_talk",
    "travel": "travel",
    "utility": "everyday_tools",
    "work": "workplace",
    "out_of_scope": OUT_OF_SCOPE,
}


class Utterance:
    def __init__(self, text: str, intent: str, domain: str, group: str) -> None:
        self.text = text
        self.intent = intent
        self.domain = domain
        self.group = group


def utterances(truth: Path) -> list[Utterance]:
    return [
        Utterance(row["text"], row["note"] or OUT_OF_SCOPE, LABELS[row["label"].removeprefix("topic:")], row["group"])
        for row in rows(truth / "c_semantic.jsonl")
        if row["source"] == "clinc-oos"
    ]


def train(
    reader: Reader, trained: Sequence[Utterance], ordinary: Sequence[str], recipe: Recipe = RECIPE
) -> dict[str, Array]:
    """Train the head. `ordinary` are texts of no domain, which are longer than all utterances."""
    known = [*trained, *(Utterance(text, OUT_OF_SCOPE, OUT_OF_SCOPE, "") for text in ordinary)]
    domain_of = {utterance.intent: utterance.domain for utterance in known}
    intents = sorted(domain_of)
    domains = sorted(set(LABELS.values()))
    windows = [(intents.index(one.intent), window) for one in known for window in reader.read(one.text)[:1]]
    fitted = Fit(recipe, len(intents)).run(
        Windows(
            embeddings=np.stack([window.embedding for _, window in windows]),
            ids=[window.ids for _, window in windows],
            targets=np.eye(len(intents))[[number for number, _ in windows]],
            weights=np.ones(len(windows)),
        )
    )
    return arrays([fitted], NAME, intents) | {
        f"{NAME}.domains": np.array(domains),
        f"{NAME}.domain_of": np.array([domains.index(domain_of[intent]) for intent in intents]),
    }
