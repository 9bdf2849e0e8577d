"""A folder of a GLiNER model, small enough for tests."""

import json
import shutil
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

_MODEL: Final = Path(__file__).parents[1] / "detection" / "entities" / "gliner" / "model.onnx"
_WORDS: Final = (
    "[UNK]", "<<ENT>>", "<<SEP>>", "person", "organization", "location", "address", "date", "of", "birth",
    "drug", "name", "disease",
)  # fmt: skip


def gliner_folder(path: Path) -> Path:
    """A span model that finds the first word of each label. `make.py` in the same folder creates it."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["<<ENT>>", "<<SEP>>"])
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(path / "tokenizer.json"))
    shutil.copy(_MODEL, path)
    (path / "gliner_config.json").write_text(json.dumps({"max_width": 3, "span_mode": "markerV0"}))
    return path
