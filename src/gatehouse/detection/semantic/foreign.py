"""Runs a model that the operator supplies (`SEMANTIC_MODEL_PATH`): an ONNX export with config.json and tokenizer.json.

sequence classification    the classes of the model are labels; a text is read in at most six windows
sentence embeddings        the model scores every label that has no trained head in the embedded model
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from gatehouse.detection.models import Classifier
from gatehouse.detection.semantic.backbone import Vector, readable_part, session
from gatehouse.detection.semantic.embedded import DATA, EmbeddedClassifier
from gatehouse.detection.semantic.heads import sigmoid, softmax
from gatehouse.detection.semantic.zero_shot import ZeroShot, known_labels

_MAX_WINDOW_TOKENS: Final = 512
_MAX_PARTS: Final = 6
#: Maps classes of public guard models to labels. Classes for harmless texts (`_HARMLESS`) are not labels.
_NAMES: Final = {"injection": "prompt_injection", "jailbreak": "jailbreak"}
_HARMLESS: Final = frozenset({"safe", "benign", "legit", "negative", "none", "neutral", "other", "not_injection"})
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")


class SemanticModelUnusable(Exception):
    """The model at `SEMANTIC_MODEL_PATH` cannot be used. Base class of the other errors."""


class FileMissing(SemanticModelUnusable):
    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(
            f"{folder} has no {name}: the folder must contain an ONNX export (model.onnx or onnx/model.onnx), "
            "config.json and tokenizer.json"
        )


class BadSemanticModel(SemanticModelUnusable):
    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} cannot be loaded: {reason}")


class _Config(msgspec.Struct):
    """The relevant fields of a model's config.json."""

    architectures: list[str] = []
    id2label: dict[str, str] = {}
    problem_type: str | None = None
    max_position_embeddings: int = _MAX_WINDOW_TOKENS


class _Model:
    """The tokenizer and session of a model, and the names of its inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = _config(folder)
        self._tokenizer = _tokenizer(folder)
        self._session = _session(folder)
        unknown = [tensor.name for tensor in self._session.get_inputs() if tensor.name not in _INPUTS]
        if unknown:
            raise BadSemanticModel(
                folder, f"the model needs the input {unknown[0]}; supported are {', '.join(_INPUTS)}"
            )
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]
        self.shapes = {output.name: output.shape for output in self._session.get_outputs()}
        self.outputs = {name: len(shape) for name, shape in self.shapes.items()}
        # RoBERTa reserves two positions.
        self._window = min(_MAX_WINDOW_TOKENS, self.config.max_position_embeddings - 2)

    def windows(self, text: str) -> list[NDArray[np.int64]]:
        """Return the token ids of each window, with special tokens. If a text has more than six windows, return the
        first one, the last one and four between them. If a text has only white space, return no window."""
        if not text.strip():
            return []
        special = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self._tokenizer.enable_truncation(self._window, stride=(self._window - special) // 5)
        whole = self._tokenizer.encode(readable_part(text))
        parts = [whole, *whole.overflowing]
        if len(parts) > _MAX_PARTS:
            parts = [parts[number] for number in np.linspace(0, len(parts) - 1, _MAX_PARTS).round().astype(int)]
        return [np.array([part.ids], dtype=np.int64) for part in parts]

    def run(self, ids: NDArray[np.int64], output: str) -> NDArray[Any]:
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        result: NDArray[Any] = self._session.run([output], {name: inputs[name] for name in self._inputs})[0]
        return result


class ForeignClassifier:
    """Uses a sequence classification model for its own labels, and the classifier `fallback` for all other labels."""

    def __init__(self, model: _Model, fallback: Classifier) -> None:
        self._model = model
        self._fallback = fallback
        self._columns = _columns(model)

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self._columns, *(label for label in self._fallback.labels if label not in self._columns))

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        others = [label for label in labels if label not in self._columns]
        results: list[dict[str, float]] = self._fallback.classify(texts, others) if others else [{} for _ in texts]
        if len(others) < len(labels):
            results = [scores | self._scores(text) for text, scores in zip(texts, results, strict=True)]
        return [{label: scores[label] for label in labels} for scores in results]

    def _scores(self, text: str) -> dict[str, float]:
        windows = self._model.windows(text)
        if not windows:
            return dict.fromkeys(self._columns, 0.0)
        logits = np.stack([self._model.run(ids, "logits")[0] for ids in windows])
        if self._model.config.problem_type == "multi_label_classification":
            scores = sigmoid(logits)
        else:
            scores = np.stack([softmax(row) for row in logits])
        return {label: float(scores[:, column].max()) for label, column in self._columns.items()}


class ForeignEmbeddings:
    """Uses a sentence embedding model for zero-shot labels, and the embedded classifier for labels with a trained
    head."""

    def __init__(self, model: _Model, embedded: EmbeddedClassifier) -> None:
        self._model = model
        self._embedded = embedded
        self._pooled = next((name for name, rank in model.outputs.items() if rank == 2), None)
        self._tokens = next((name for name, rank in model.outputs.items() if rank == 3), "")
        self._first_token = _pools_first_token(model.folder)
        examples = {label: self._stack(known.examples) for label, known in known_labels(DATA).items()}
        background = self._stack(msgspec.json.decode((DATA / "background.json").read_bytes(), type=list[str]))
        self._zero_shot = ZeroShot(self._embed, examples, background, *embedded.curves)

    @property
    def labels(self) -> tuple[str, ...]:
        return self._embedded.labels

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        trained = [label for label in labels if label in self.labels]
        others = [label for label in labels if label not in self.labels]
        results: list[dict[str, float]] = self._embedded.classify(texts, trained) if trained else [{} for _ in texts]
        if others:
            results = [scores | self._scores(text, others) for text, scores in zip(texts, results, strict=True)]
        return [{label: scores[label] for label in labels} for scores in results]

    def _scores(self, text: str, labels: Sequence[str]) -> dict[str, float]:
        windows = self._model.windows(text)
        if not windows:
            return dict.fromkeys(labels, 0.0)
        vectors = np.stack([self._vector(ids) for ids in windows])
        return {label: self._zero_shot.score(vectors, label) for label in labels}

    def _embed(self, text: str) -> Vector:
        return self._vector(self._model.windows(text)[0])

    def _stack(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._embed(text) for text in texts])

    def _vector(self, ids: NDArray[np.int64]) -> Vector:
        if self._pooled:
            vector = self._model.run(ids, self._pooled)[0]
        else:
            tokens = self._model.run(ids, self._tokens)[0]
            vector = tokens[0] if self._first_token else tokens.mean(axis=0)
        unit: Vector = (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)
        return unit


def open_foreign(folder: Path, embedded: EmbeddedClassifier) -> Classifier:
    """Load the model in a folder. Raises `SemanticModelUnusable`."""
    model = _Model(folder)
    if "logits" in model.outputs:
        return ForeignClassifier(model, embedded)
    if 2 in model.outputs.values() or 3 in model.outputs.values():
        return ForeignEmbeddings(model, embedded)
    raise BadSemanticModel(
        folder,
        f"none of the outputs ({', '.join(model.outputs)}) is logits, vectors of tokens or the vector of a sentence",
    )


def _config(folder: Path) -> _Config:
    path = folder / "config.json"
    if not path.is_file():
        raise FileMissing(folder, path.name)
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Config)
    except msgspec.DecodeError as fault:
        raise BadSemanticModel(folder, f"config.json: {fault}") from fault


def _tokenizer(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileMissing(folder, path.name)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as fault:  # the library raises the class `Exception` itself
        raise BadSemanticModel(folder, f"tokenizer.json: {fault}") from fault
    tokenizer.no_padding()
    return tokenizer


def _session(folder: Path) -> onnxruntime.InferenceSession:
    path = next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)
    if path is None:
        raise FileMissing(folder, "model.onnx")
    try:
        return session(path)
    except Exception as fault:  # onnxruntime raises exceptions of many unrelated classes
        raise BadSemanticModel(folder, f"{path.name}: {fault}") from fault


def _columns(model: _Model) -> dict[str, int]:
    """Return the index of the class for each label. Raises `BadSemanticModel` if config.json has no usable class."""
    columns = {}
    for number, name in model.config.id2label.items():
        label = "_".join(name.lower().replace("-", " ").replace("_", " ").split())
        if label not in _HARMLESS and not label.startswith("label_"):
            columns[_NAMES.get(label, label)] = int(number)
    width = model.shapes["logits"][-1]
    outside = [number for number in columns.values() if isinstance(width, int) and number >= width]
    if outside:
        raise BadSemanticModel(model.folder, f"config.json names the class {outside[0]}, but the model has {width}")
    if not columns:
        raise BadSemanticModel(
            model.folder, "id2label of config.json must name its classes, such as INJECTION or JAILBREAK"
        )
    return columns


def _pools_first_token(folder: Path) -> bool:
    path = folder / "1_Pooling" / "config.json"
    return path.is_file() and b'"pooling_mode_cls_token": true' in path.read_bytes()
