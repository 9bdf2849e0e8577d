"""Computes the vectors that zero-shot labels are compared with, and the curves that convert distances to scores."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np

from gatehouse.detection.semantic.zero_shot import KnownLabel, known_labels, nearness, sentences, similarity_to_ordinary
from training.semantic.corpus import harmless, scenes
from training.semantic.fit import Array
from training.semantic.windowed import Reader


def background(random: Random) -> list[str]:
    """Return 320 made-up ordinary texts about many subjects."""
    makers = (harmless.request, harmless.trigger, harmless.paper, scenes.short_scene, scenes.duty)
    return [maker(random) for maker in makers for _ in range(64)]


def arrays(reader: Reader, data: Path, texts: Sequence[str], utterances: Sequence[str]) -> dict[str, Array]:
    """Return the arrays. `texts` are also shipped as text, for other backbones. Of `utterances`, only the vectors are
    shipped."""
    (data / "background.json").write_text(json.dumps(texts, ensure_ascii=False, indent=0), encoding="utf-8")
    background = _vectors(reader, [*texts, *utterances])
    known = known_labels(data)
    examples = {label: _vectors(reader, one.examples) for label, one in known.items()}
    words = {label: _vectors(reader, sentences(_worded(label, known))) for label in known}
    return {
        "zero_shot.background": background.astype(np.float16),
        "zero_shot.by_examples": _curve(background, examples, dict.fromkeys(known)),
        "zero_shot.by_words": _curve(background, examples, words),
        **{f"zero_shot.examples.{label}": vectors.astype(np.float16) for label, vectors in examples.items()},
    }


def _worded(label: str, known: dict[str, KnownLabel]) -> str:
    """Return the text of a label. Half of the labels have a description, because one curve must fit labels with and
    without a description."""
    return f"{label}: {known[label].words}" if len(label) % 2 else label


def _vectors(reader: Reader, texts: Sequence[str]) -> Array:
    return np.stack([reader.read(text)[0].embedding for text in texts])


def _curve(background: Array, examples: dict[str, Array], prototypes: Mapping[str, Array | None]) -> Array:
    """Return a logistic curve over distances. The score must be above one half for examples of a label, and below one
    half for ordinary texts. If a label has no prototypes, each example is compared with the other examples of the
    label."""
    distances: list[float] = []
    right: list[float] = []
    for label, own in examples.items():
        prototype = prototypes[label]
        others = np.concatenate([background, *(vectors for name, vectors in examples.items() if name != label)])
        mean, deviation = similarity_to_ordinary(others, own if prototype is None else prototype)
        for number, vector in enumerate(own):
            near = np.delete(own, number, axis=0) if prototype is None else prototype
            distances.append(float((nearness(vector[None], near)[0] - mean) / deviation))
            right.append(1.0)
        distances += list((nearness(background, own if prototype is None else prototype) - mean) / deviation)
        right += [0.0] * len(background)
    return _logistic(np.array(distances), np.array(right))


def _logistic(distances: Array, right: Array) -> Array:
    """Return the slope and the middle of a logistic curve. A false alarm has the weight of eight misses."""
    weights = np.where(right == 1, 1 / right.sum(), 8 / (1 - right).sum())
    slope, middle = 1.0, 3.0
    for _ in range(20000):
        error = (1 / (1 + np.exp(-slope * (distances - middle))) - right) * weights
        slope -= 0.05 * float((error * (distances - middle)).sum())
        middle -= 0.05 * float((-error * slope).sum())
    return np.array([slope, middle])
