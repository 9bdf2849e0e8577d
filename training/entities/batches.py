"""Converts examples to tensors, in batches of similar length."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from gatehouse.detection.entities.network.features import pieces
from training.entities.corpus import KINDS, Example

IGNORED = -100
MAX_TOKENS = 254
CLS, SEP = 101, 102


@dataclass
class Row:
    ids: np.ndarray
    shapes: np.ndarray
    tags: np.ndarray


def row(tokenizer: Tokenizer, example: Example) -> Row:
    """Return the row of an example. The tag of a piece is 0 outside of names, 1 + 2 * kind at the beginning of a name,
    and 2 + 2 * kind within a name. Only the first piece of a word has a tag."""
    read = pieces(tokenizer, example.text)
    size = min(len(read.ids), MAX_TOKENS)
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


def batches(rows: list[Row], size: int, draw: random.Random) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield batches of ids, shapes, mask and tags. Texts of similar length are in one batch. The batches are in random
    order."""
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
