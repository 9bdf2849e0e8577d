"""Converts texts to token ids, and token ids to sentence embeddings, with onnxruntime on one thread."""

from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

Ids = NDArray[np.int64]
Vector = NDArray[np.float32]

#: Code points. Of a longer text only the beginning and the end are read, so that the time is bounded.
HEAD_CHARACTERS: Final = 96_000
TAIL_CHARACTERS: Final = 32_000


def readable(text: str) -> str:
    """Return the part of a text that is read. A lone surrogate, which JSON may contain, becomes a question mark,
    because the tokenizer refuses it."""
    if len(text) > HEAD_CHARACTERS + TAIL_CHARACTERS:
        text = f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"
    return text.encode(errors="replace").decode()


def session(path: Path) -> onnxruntime.InferenceSession:
    """A model on one thread: the tier scales by processes, and threads of one model would spin on shared cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # An arena would keep the memory that the longest text needed.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Backbone:
    """The embedded MiniLM: `model.onnx` and `tokenizer.json` as `training/semantic/convert.py` writes them."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._first, self._last = (np.array([self._tokenizer.token_to_id(name)]) for name in ("[CLS]", "[SEP]"))
        self._session = session(folder / "model.onnx")

    def tokens(self, text: str) -> Ids:
        """Return the token ids without special tokens. Text is lowercased, accents are removed."""
        return np.array(self._tokenizer.encode(readable(text), add_special_tokens=False).ids, dtype=np.int64)

    def embed(self, ids: Ids) -> Vector:
        """Return a vector of length 1. Each text is a run of its own: activations are quantized over a batch, so in a
        batch a vector would depend on the other texts."""
        framed = np.concatenate((self._first, ids, self._last))
        embedding: Vector = self._session.run(["embedding"], {"input_ids": framed[None]})[0][0]
        return embedding
