"""Modules that are imported when they are first used: for what few installations need and all would pay for."""

import asyncio
from importlib import import_module
from types import ModuleType
from typing import Any


class Lazily(ModuleType):
    """Stands for the module of this name. Reading an attribute imports it, which blocks: `arrived` does so aside."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


_arrived: set[str] = set()


async def arrived(*modules: ModuleType) -> None:
    """Returns when they are imported."""
    for name in {module.__name__ for module in modules} - _arrived:
        await asyncio.to_thread(import_module, name)
        _arrived.add(name)
