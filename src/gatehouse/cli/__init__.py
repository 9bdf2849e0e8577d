"""The command line (decisions 10). Each command is a module that is imported only when it is called."""

from gatehouse.cli.main import main

__all__ = ["main"]
