"""Imports the CEL library without its command line. For the command line, the package would import a terminal toolkit,
which takes 7 MiB of memory and a quarter of a second in every worker."""

import sys
from types import ModuleType

sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))

import cel  # noqa: E402 - after the replacement above

__all__ = ["cel"]
