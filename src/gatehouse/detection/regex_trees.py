"""Python's own parser of regexes, which has no types: `parser.parse` makes a tree, whose nodes are named in `op`. It
knows what RE2 does not tell: how long a match may be."""

from importlib import import_module
from typing import Any, Final

parser: Final[Any] = import_module("re._parser")
op: Final[Any] = import_module("re._constants")
