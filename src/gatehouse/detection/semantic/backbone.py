"""Texts to token ids, token ids to sentence embeddings: onnxruntime on one thread, nothing else."""

from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

Ids = NDArray[np.int64]
Vector = NDArray[np.float32]

#: Of a longer text only its beginning and its end are read, in code points: the tier's time is bounded.
HEAD_CHARACTERS: Final = 96_000
TAIL_CHARACTERS: Final = 32_000


def readable(text: str) -> str:
    """As much of it as is read. A half of a surrogate pair, which JSON may hold, becomes a question mark: the tokenizer
    refuses it."""
    if len(text) > HEAD_CHARACTERS + TAIL_CHARACTERS:
        text = f"{text[:HEAD_CHARACTERS]}\n{text[-TAIL_CHARACTERS:]}"
    return text.encode(errors="replace").decode()


def session(path: Path) -> onnxruntime.InferenceSession:
    """A model on one thread: the tier scales by processes, and threads of one model would spin on shared cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # An arena would keep the memory of the longest text for good.
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
        """Without the special tokens. Lower-case, accents taken off; empty for an empty text."""
        return np.array(self._tokenizer.encode(readable(text), add_special_tokens=False).ids, dtype=np.int64)

    def embed(self, ids: Ids) -> Vector:
        """One vector of length 1. One text a run: activations are quantised over a whole batch, so that in a batch a
        text's vector would depend on its neighbours."""
        framed = np.concatenate((self._first, ids, self._last))
        embedding: Vector = self._session.run(["embedding"], {"input_ids": framed[None]})[0][0]
        return embedding
