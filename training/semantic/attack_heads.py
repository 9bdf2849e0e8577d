"""Trains the heads for prompt injection and jailbreak."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from gatehouse.detection.semantic import ngrams
from gatehouse.detection.semantic.heads import ScoringHead
from training.semantic.fit import Array, Fit, Recipe, Windows, arrays
from training.semantic.sets import CLASSES, HARMLESS, Example
from training.semantic.windowed import Reader, Window

RECIPE = Recipe("sigmoid", epochs=8, gram_dropout=0.6)
NAME = "attacks"
SEEDS = (7, 8)
#: The logits of each class at which the score is one half. They were chosen so that less than 5% of harmless role plays
#: count as jailbreaks.
MIDDLE = (0.75, 1.15)
#: The targets of a harmless passage that is read separately. Only injections are searched for in passages.
PASSAGE = (0.0, nan)


@dataclass(frozen=True)
class Sample:
    """A window. `number` is the number of the example that it belongs to."""

    number: int
    window: Window
    targets: tuple[float, float]
    weight: float


def train(reader: Reader, examples: Sequence[Example], recipe: Recipe = RECIPE) -> dict[str, Array]:
    """Train the heads in two rounds.

    Not every window of an attack contains the attack. The second round leaves out the windows that the first round
    classified as harmless, except the most suspicious window of each attack. It adds the harmless passages that the
    first round classified as most similar to injections. The second round is trained with several seeds, whose mean
    varies less than a single result."""
    samples = [
        Sample(number, window, example.targets, len(windows) ** -0.5)
        for number, example in enumerate(examples)
        for windows in [reader.read(example.text)]
        for window in windows
    ]
    head = ScoringHead(arrays([_fit(samples, recipe)], NAME, CLASSES), NAME)
    kept = _without_harmless(samples, head)
    for number, example in enumerate(examples):
        if example.targets == HARMLESS:
            passages = reader.worst_passages(example.text, head)
            kept += [Sample(number, passage, PASSAGE, len(passages) ** -0.5) for passage in passages]
    merged = arrays([_fit(kept, replace(recipe, seed=seed)) for seed in SEEDS], NAME, CLASSES)
    merged[f"{NAME}.bias"] -= np.array(MIDDLE, dtype=np.float16)
    return merged


def _without_harmless(samples: Sequence[Sample], head: ScoringHead) -> list[Sample]:
    worst: dict[int, float] = {}
    logits = []
    for sample in samples:
        expected = int(sample.targets[1] == 1)
        result = head.logits(sample.window.embedding, ngrams.buckets(sample.window.ids, head.buckets))
        logits.append(float(result[expected]))
        worst[sample.number] = max(worst.get(sample.number, -99), logits[-1])
    return [
        sample
        for sample, logit in zip(samples, logits, strict=True)
        if sample.targets == HARMLESS or logit > 0 or logit == worst[sample.number]
    ]


def _fit(samples: Sequence[Sample], recipe: Recipe) -> Fit:
    return Fit(recipe, len(CLASSES)).run(
        Windows(
            embeddings=np.stack([sample.window.embedding for sample in samples]),
            ids=[sample.window.ids for sample in samples],
            targets=np.array([sample.targets for sample in samples]),
            weights=np.array([sample.weight for sample in samples]),
        )
    )
