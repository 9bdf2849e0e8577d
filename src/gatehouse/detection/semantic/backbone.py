"""Converts texts to token ids, and token ids to sentence embeddings. Runs onnxruntime on one thread."""

from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

Ids = NDArray[np.int64]
Vector = NDArray[np.float32]

#: Maximum code points that are read at the beginning and at the end of a text. They bound the time for a long text.
HEAD_CHARACTERS: Final = 96_000
TAIL_CHARACTERS: Final = 32_000


def readable_part(text: str) -> str:
    """Return the part of a text that is read. JSON may contain lone surrogates, which the tokenizer refuses. Each is
    replaced by a question mark."""
    if len(text) > HEAD_CHARACTERS + TAIL_CHARACTERS:
        text = f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"
    return text.encode(errors="replace").decode()


def session(path: Path) -> onnxruntime.InferenceSession:
    """Load a model that runs on one thread. More threads would spin on cores that other processes use."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # An arena would never release the memory that the longest text needed.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Backbone:
    """The MiniLM model in `folder`: `model.onnx` and `tokenizer.json`, which `training/semantic/convert.py` writes."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._first, self._last = (np.array([self._tokenizer.token_to_id(name)]) for name in ("[CLS]", "[SEP]"))
        self._session = session(folder / "model.onnx")

    def tokens(self, text: str) -> Ids:
        """Return the token ids of a text, without special tokens. The tokenizer converts letters to lower case and
        removes accents."""
        return np.array(self._tokenizer.encode(readable_part(text), add_special_tokens=False).ids, dtype=np.int64)

    def embed(self, ids: Ids) -> Vector:
        """Return the embedding of a text, a vector of length 1. Each text is run separately. Activations are quantized
        over a batch, so in a batch the vector would depend on the other texts."""
        framed = np.concatenate((self._first, ids, self._last))
        embedding: Vector = self._session.run(["embedding"], {"input_ids": framed[None]})[0][0]
        return embedding
