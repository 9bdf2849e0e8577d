"""Trains the heads for prompt injection and jailbreak."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from gatehouse.detection.semantic import ngrams
from gatehouse.detection.semantic.heads import Head
from training.semantic.fit import Array, Fit, Recipe, Windows, arrays
from training.semantic.sets import CLASSES, Example
from training.semantic.windowed import Reader, Window

RECIPE = Recipe("sigmoid", epochs=8, batch=96, gram_dropout=0.6)
NAME = "attacks"
SEEDS = (7, 8)
#: A score of one half means this logit, so that of long harmless prompts under five in a hundred are called attacks.
MIDDLE = 0.25


def train(reader: Reader, examples: Sequence[Example], recipe: Recipe = RECIPE) -> dict[str, Array]:
    """Two rounds. Not every window of an attack is one: in the second round those stay out that the first found
    harmless, except each attack's worst. The second is fitted from several seeds, whose mean is steadier than any."""
    windows = [(number, window) for number, example in enumerate(examples) for window in reader.read(example.text)]
    random = Random(SEEDS[0])
    for number, example in enumerate(examples):
        if example.harmless:
            windows += [(number, passage) for passage in reader.passage(example.text, random)]
    counts = np.bincount([number for number, _ in windows])
    first = _fit(examples, windows, counts, recipe)
    head = Head(arrays([first], NAME, CLASSES), NAME)
    worst: dict[int, float] = {}
    logits = []
    for number, window in windows:
        wanted = int(examples[number].targets[1] == 1)
        logit = float(head.logits(window.embedding, ngrams.buckets(window.ids, head.buckets))[wanted])
        logits.append(logit)
        worst[number] = max(worst.get(number, -99), logit)
    kept = [
        pair
        for pair, logit in zip(windows, logits, strict=True)
        if examples[pair[0]].harmless or logit > 0 or logit == worst[pair[0]]
    ]
    fits = [_fit(examples, kept, counts, replace(recipe, seed=seed)) for seed in SEEDS]
    merged = arrays(fits, NAME, CLASSES)
    merged[f"{NAME}.bias"] -= np.float16(MIDDLE)
    return merged


def _fit(examples: Sequence[Example], windows: Sequence[tuple[int, Window]], counts: Array, recipe: Recipe) -> Fit:
    return Fit(recipe, len(CLASSES)).run(
        Windows(
            embeddings=np.stack([window.embedding for _, window in windows]),
            ids=[window.ids for _, window in windows],
            targets=np.array([examples[number].targets for number, _ in windows]),
            weights=np.array([counts[number] ** -0.5 for number, _ in windows]),
        )
    )
