"""Imports modules at their first use, for features that only few installations need."""

import asyncio
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A placeholder for a module. The first read of an attribute imports the module and blocks meanwhile. To avoid
    this, call `import_in_thread` before."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


_imported: set[str] = set()


async def import_in_thread(*modules: ModuleType) -> None:
    """Imports the modules in a thread and returns when they are imported."""
    for name in {module.__name__ for module in modules} - _imported:
        await asyncio.to_thread(import_module, name)
        _imported.add(name)
