"""Fits a head (`gatehouse.detection.semantic.heads`) with Adam on small batches. It needs only numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gatehouse.detection.semantic import ngrams

Array = NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    loss: Literal["sigmoid", "softmax"]
    hidden: int = 64
    buckets: int = 2**15
    epochs: int = 12
    batch: int = 64
    rate: float = 2e-3
    decay: float = 0.01
    dropout: float = 0.3
    gram_scale: float = 3.0
    gram_dropout: float = 0.3
    seed: int = 7


@dataclass(frozen=True)
class Windows:
    """The windows to train on: `embeddings` [n, 384], `ids` (the tokens of each window), `targets` [n, classes] (NaN if
    unknown), and `weights` [n]."""

    embeddings: Array
    ids: Sequence[Array]
    targets: Array
    weights: Array


class Fit:
    def __init__(self, recipe: Recipe, classes: int) -> None:
        self.recipe = recipe
        self._random = np.random.default_rng(recipe.seed)
        self.parameters = {
            "hidden": (self._random.standard_normal((384, recipe.hidden)) * 0.1).astype(np.float32),
            "hidden_bias": np.zeros(recipe.hidden, dtype=np.float32),
            "out": (self._random.standard_normal((recipe.hidden, classes)) * 0.1).astype(np.float32),
            "bias": np.zeros(classes, dtype=np.float32),
            "grams": np.zeros((recipe.buckets, classes), dtype=np.float32),
        }
        self._first = {name: np.zeros_like(value) for name, value in self.parameters.items()}
        self._second = {name: np.zeros_like(value) for name, value in self.parameters.items()}
        self._steps = 0

    def run(self, windows: Windows) -> "Fit":
        grams = [ngrams.distinct(ngrams.buckets(ids, self.recipe.buckets)) for ids in windows.ids]
        count = len(grams)
        total = self.recipe.epochs * -(-count // self.recipe.batch)
        for _ in range(self.recipe.epochs):
            order = self._random.permutation(count)
            for start in range(0, count, self.recipe.batch):
                chosen = order[start : start + self.recipe.batch]
                rate = self.recipe.rate * (1 - self._steps / total)
                self._step(windows, [grams[i] for i in chosen], chosen, rate)
        return self

    def _step(self, windows: Windows, grams: list[tuple[Array, Array]], chosen: Array, rate: float) -> None:
        p, scale = self.parameters, self.recipe.gram_scale
        embeddings = windows.embeddings[chosen]
        rows = np.repeat(np.arange(len(chosen)), [len(used) for used, _ in grams])
        used = np.concatenate([used for used, _ in grams])
        values = np.concatenate([values for _, values in grams])
        # Without dropout, the head would depend only on the words in the templates of made-up texts.
        seen = self._random.random(len(values)) >= self.recipe.gram_dropout
        rows, used = rows[seen], used[seen]
        values = values[seen, None] * (scale / (1 - self.recipe.gram_dropout))
        before = embeddings @ p["hidden"] + p["hidden_bias"]
        kept = (self._random.random(before.shape) >= self.recipe.dropout) / (1 - self.recipe.dropout)
        hidden = np.maximum(before, 0) * kept
        lexical = _sums(p["grams"][used] * values, rows, len(chosen))
        error = self._error(hidden @ p["out"] + p["bias"] + lexical, windows.targets[chosen])
        error = (error * windows.weights[chosen, None] / len(chosen)).astype(np.float32)
        back = (error @ p["out"].T) * kept * (before > 0)
        gram_gradient = _sums(error[rows] * values, used, len(p["grams"]))
        self._adam(
            {
                "hidden": embeddings.T @ back,
                "hidden_bias": back.sum(axis=0),
                "out": hidden.T @ error,
                "bias": error.sum(axis=0),
                "grams": gram_gradient,
            },
            rate,
        )

    def _error(self, logits: Array, targets: Array) -> Array:
        if self.recipe.loss == "softmax":
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True) - targets)
        return np.nan_to_num(1 / (1 + np.exp(-np.clip(logits, -30, 30))) - targets)

    def _adam(self, gradients: dict[str, Array], rate: float) -> None:
        self._steps += 1
        for name, gradient in gradients.items():
            first, second = self._first[name], self._second[name]
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            slope = (first / (1 - 0.9**self._steps)) / (np.sqrt(second / (1 - 0.999**self._steps)) + 1e-8)
            decay = 0 if name.endswith("bias") else self.recipe.decay
            self.parameters[name] -= rate * (slope + decay * self.parameters[name])


def _sums(values: Array, places: Array, count: int) -> Array:
    """Return the sums of the values of each place, as an array [count, classes]."""
    columns = [np.bincount(places, weights=column, minlength=count) for column in values.T]
    return np.stack(columns, axis=1).astype(np.float32)


def arrays(fits: Sequence[Fit], name: str, classes: Sequence[str]) -> dict[str, Array]:
    """Return the mean of several fits as the arrays of one head. The hidden units of all fits are put next to each
    other."""
    parts = [fit.parameters for fit in fits]
    merged = {
        "hidden": np.concatenate([part["hidden"] for part in parts], axis=1),
        "hidden_bias": np.concatenate([part["hidden_bias"] for part in parts]),
        "out": np.concatenate([part["out"] for part in parts]) / len(fits),
        "bias": sum(part["bias"] for part in parts) / len(fits),
        "grams": sum(part["grams"] * fit.recipe.gram_scale for fit, part in zip(fits, parts, strict=True)) / len(fits),
    }
    return {f"{name}.{part}": np.asarray(value, dtype=np.float16) for part, value in merged.items()} | {
        f"{name}.classes": np.array(classes)
    }
