"""Examples to tensors: another wording each epoch, packed by length."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from gatehouse.detection.entities.features import pieces
from training.entities.corpus import KINDS, Example
from training.entities.made_names import MadeNames

IGNORED = -100
LONGEST = 254
CLS, SEP = 101, 102

#: Shares of an epoch's texts that are lower-cased, upper-cased, title-cased, and whose names are exchanged.
LOWERED, UPPERED, TITLED, SWAPPED = 0.12, 0.03, 0.03, 0.4
#: Of the names that are exchanged, how many become made-up ones.
MADE_UP = 0.5


@dataclass
class Row:
    ids: np.ndarray
    shapes: np.ndarray
    tags: np.ndarray


def row(tokenizer: Tokenizer, example: Example) -> Row:
    """Tags: 0 outside, 1 + 2 * kind begins, 2 + 2 * kind goes on; only the first piece of a word has one."""
    read = pieces(tokenizer, example.text)
    size = min(len(read.ids), LONGEST)
    tags = np.full(size, IGNORED)
    tags[read.first[:size]] = 0
    for start, end in example.unsure:
        tags[(read.starts[:size] < end) & (read.ends[:size] > start)] = IGNORED
    for start, end, kind in example.spans:
        inside = (read.starts[:size] < end) & (read.ends[:size] > start) & (tags != IGNORED)
        (places,) = inside.nonzero()
        tags[places] = 2 + 2 * KINDS.index(kind)
        tags[places[:1]] = 1 + 2 * KINDS.index(kind)
    edge = np.array([0])
    return Row(
        np.concatenate(([CLS], read.ids[:size], [SEP])),
        np.concatenate((edge, read.shapes[:size], edge)),
        np.concatenate(([IGNORED], tags, [IGNORED])),
    )


class Wordings:
    """Other wordings of an example, with the names of the others."""

    def __init__(self, examples: list[Example], draw: random.Random) -> None:
        self._draw = draw
        self._names = {kind: self._named(examples, kind) for kind in KINDS}
        self._made = MadeNames(examples, draw)

    @staticmethod
    def _named(examples: list[Example], kind: str) -> list[str]:
        found = (e.text[s:t] for e in examples for s, t, k in e.spans if k == kind)
        return sorted({name for name in found if name[:1].isupper() and "@" not in name and "#" not in name})

    def of(self, example: Example) -> Example:
        if example.spans and self._draw.random() < SWAPPED:
            example = self._swapped(example)
        case = self._draw.random()
        text = example.text
        if case < LOWERED:
            text = text.lower()
        elif case < LOWERED + UPPERED:
            text = text.upper()
        elif case < LOWERED + UPPERED + TITLED:
            text = text.title()
        if len(text) != len(example.text):
            return example
        return Example(text, example.group, example.source, example.spans, example.unsure)

    def _other(self, kind: str) -> str:
        return self._made.of(kind) if self._draw.random() < MADE_UP else self._draw.choice(self._names[kind])

    def _swapped(self, example: Example) -> Example:
        ordered = sorted(example.spans)
        if any(a[1] > b[0] for a, b in pairwise(ordered)):
            return example
        text, spans, shifts, at = "", [], [], 0
        for start, end, kind in ordered:
            old = example.text[start:end]
            new = self._other(kind) if old[:1].isupper() and self._draw.random() < 0.7 else old
            text += example.text[at:start]
            spans.append((len(text), len(text) + len(new), kind))
            text += new
            at = end
            shifts.append((end, len(text) - end))

        def moved(position: int) -> int:
            return position + next((by for behind, by in reversed(shifts) if position >= behind), 0)

        unsure = [(moved(s), moved(e)) for s, e in example.unsure]
        return Example(text + example.text[at:], example.group, example.source, spans, unsure)


def batches(rows: list[Row], size: int, draw: random.Random) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Ids, shapes, mask and tags; texts of about one length together, batches in random order."""
    ordered = sorted(range(len(rows)), key=lambda i: (len(rows[i].ids), draw.random()))
    packs = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    draw.shuffle(packs)
    for pack in packs:
        yield padded([rows[i] for i in pack])


def padded(rows: list[Row]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    width = max(len(row.ids) for row in rows)
    ids, shapes = torch.zeros(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width, dtype=torch.long)
    tags = torch.full((len(rows), width), IGNORED)
    mask = torch.full((len(rows), 1, 1, width), -1e4)
    for index, row in enumerate(rows):
        length = len(row.ids)
        ids[index, :length], shapes[index, :length] = torch.from_numpy(row.ids), torch.from_numpy(row.shapes)
        tags[index, :length] = torch.from_numpy(row.tags)
        mask[index, 0, 0, :length] = 0.0
    return ids, shapes, mask, tags
