"""The CEL library without its command line. Its package imports a terminal toolkit for that: 7 MiB in every worker and
a quarter of a second of every start."""

import sys
from types import ModuleType

sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))

import cel  # noqa: E402 - after the replacement above

__all__ = ["cel"]
