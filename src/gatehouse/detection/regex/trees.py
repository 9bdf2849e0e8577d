"""Python's own regex parser, which has no types. `parser.parse` returns a tree whose nodes are named in `op`. It tells
the length of a match, which RE2 does not."""

from importlib import import_module
from typing import Any, Final

parser: Final[Any] = import_module("re._parser")
op: Final[Any] = import_module("re._constants")
