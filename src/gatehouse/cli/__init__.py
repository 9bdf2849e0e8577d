"""The command line. Each command is a module that is only imported when it is called."""

from gatehouse.cli.main import main

__all__ = ["main"]
