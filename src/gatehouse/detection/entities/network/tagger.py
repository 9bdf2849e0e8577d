"""Runs the embedded network, which recognizes names of people, organizations and places."""

import re
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from gatehouse.detection.entities.network.decoding import Name, decode_names
from gatehouse.detection.entities.network.features import Pieces, pieces
from gatehouse.detection.entities.network.name_bias import logit_bias
from gatehouse.detection.findings import Finding

#: Minimum score of a name that is reported. It was chosen on the held-out folds of the training sets.
MIN_SCORE: Final = 0.45
#: Maximum number of pieces of one run of the model. Only units in scripts for which the vocabulary has single letters
#: have more.
WINDOW_TOKENS: Final = 254
_CLS, _SEP = 101, 102

#: Handles, e-mail addresses and URLs. They are not treated as names, even if they contain a name. Patterns detect them.
_TECHNICAL: Final = re.compile(r"https?://\S+|www\.\S+|[^\s@]*@\w[\w.-]*")
#: Texts that are never a name: words that only precede names, numbers, and punctuation.
_NO_NAME: Final = re.compile(
    r"(?i)(?:the|an?|of|and|or|in|at|on|for|from|to|by|with|my|our|your|his|her|its|their|[\W\d_]+)"
)
#: Escaped line breaks and tabs of a JSON string. Their letter would become a part of the next word.
_ESCAPED: Final = re.compile(r"\\[nrt]")


class Tagger:
    """Finds names with the network. Runs the model for each text separately. The quantized sums of a batch would depend
    on all its texts, but the findings in a text must not depend on other texts."""

    def __init__(self, data: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        # Spinning threads would use the cores of the gateway between two texts.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(data / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(data / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def find(self, unit: str) -> list[Finding]:
        if not any(character.isalpha() for character in unit):
            return []
        technical = [match.span() for match in _TECHNICAL.finditer(unit)]
        return [
            Finding(name.start, name.end, name.kind, round(min(name.score, 1.0), 4), name.kind)
            for name in self.names(unit)
            if name.score >= MIN_SCORE
            and not _NO_NAME.fullmatch(unit, name.start, name.end)
            and not any(s < name.end and name.start < e for s, e in technical)
        ]

    def names(self, unit: str) -> list[Name]:
        """Return all names, including names with a low score."""
        unit = _ESCAPED.sub("  ", unit)
        read = pieces(self._tokenizer, unit)
        tagged_names: list[Name] = []
        for start in range(0, len(read.ids), WINDOW_TOKENS):
            part = Pieces(*(column[start : start + WINDOW_TOKENS] for column in read))
            tagged_names.extend(decode_names(self._scores(part, unit), part, unit))
        return tagged_names

    def _scores(self, read: Pieces, unit: str) -> np.ndarray:
        """Return log-probabilities, with a row for each piece and a column for each tag."""
        ids = np.concatenate(([_CLS], read.ids, [_SEP]))[None]
        shapes = np.concatenate(([0], read.shapes, [0]))[None]
        (logits,) = self._session.run(["logits"], {"ids": ids, "shapes": shapes})
        logits = logits[0, 1:-1].astype(np.float64) + logit_bias(unit, read)
        logits -= logits.max(axis=1, keepdims=True)
        scores: np.ndarray = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return scores
