"""The network: the six layers of MiniLM, with a shape embedding that is added to the input, and a BIO head on the
output."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from gatehouse.detection.entities.network.features import SHAPES

WIDTH, HEADS, LAYERS, INNER, VOCABULARY, POSITIONS = 384, 12, 6, 1536, 30522, 512
TAGS = 7


class Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)
        self.output_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.inner = nn.Linear(WIDTH, INNER)
        self.outer = nn.Linear(INNER, WIDTH)
        self.outer_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = dropout

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, _ = x.shape
        split = self.query_key_value(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        if mask is not None:
            scores = scores + mask
        weights = functional.dropout(scores.softmax(-1), self.dropout, self.training)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        x = self.output_norm(x + functional.dropout(self.output(mixed), self.dropout, self.training))
        deep = self.outer(functional.gelu(self.inner(x)))
        return self.outer_norm(x + functional.dropout(deep, self.dropout, self.training))


class Network(nn.Module):
    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.shapes = nn.Embedding(SHAPES, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, TAGS)
        self.dropout = dropout
        nn.init.normal_(self.shapes.weight, std=0.02)

    def forward(self, ids: Tensor, shapes: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the logits of every piece. `mask` has the shape [batch, 1, 1, length]. Its values are 0.0 or very
        negative."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.positions(places) + self.shapes(shapes))
        x = functional.dropout(x, self.dropout, self.training)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(functional.dropout(x, self.dropout, self.training))


def from_minilm(weights: Path) -> Network:
    """Return a network with the weights of the backbone. The weights of shapes and head are random."""
    network, tensors = Network(), load_file(weights)
    tensors = {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}
    state = network.state_dict()

    def take(name: str, source: Tensor) -> None:
        if state[name].shape != source.shape:
            raise ValueError(f"{name}: {tuple(source.shape)} instead of {tuple(state[name].shape)}")
        state[name] = source.clone()

    words, kind = tensors["embeddings.word_embeddings.weight"], tensors["embeddings.token_type_embeddings.weight"][0]
    take("words.weight", words)
    # Every text is of the first segment type, so its embedding is added to the positions.
    take("positions.weight", tensors["embeddings.position_embeddings.weight"] + kind)
    for part in ("weight", "bias"):
        take(f"norm.{part}", tensors[f"embeddings.LayerNorm.{part}"])
        for index in range(LAYERS):
            theirs, own = f"encoder.layer.{index}", f"layers.{index}"
            joined = [tensors[f"{theirs}.attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            take(f"{own}.query_key_value.{part}", torch.cat(joined))
            take(f"{own}.output.{part}", tensors[f"{theirs}.attention.output.dense.{part}"])
            take(f"{own}.output_norm.{part}", tensors[f"{theirs}.attention.output.LayerNorm.{part}"])
            take(f"{own}.inner.{part}", tensors[f"{theirs}.intermediate.dense.{part}"])
            take(f"{own}.outer.{part}", tensors[f"{theirs}.output.dense.{part}"])
            take(f"{own}.outer_norm.{part}", tensors[f"{theirs}.output.LayerNorm.{part}"])
    network.load_state_dict(state)
    return network
