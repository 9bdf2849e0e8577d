"""Gives access to Python's internal regex parser, which has no type annotations. `parser.parse` returns a syntax tree.
`op` has the names of its nodes. The tree gives the length of a match, which RE2 does not report."""

from importlib import import_module
from typing import Any, Final

parser: Final[Any] = import_module("re._parser")
op: Final[Any] = import_module("re._constants")
