"""Imports modules at their first use, for features that only few installations need."""

import asyncio
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Placeholder for a module. Reading an attribute imports the module and blocks; `import_in_thread` imports in a
    thread."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


_imported: set[str] = set()


async def import_in_thread(*modules: ModuleType) -> None:
    """Imports the modules in a thread and waits for them."""
    for name in {module.__name__ for module in modules} - _imported:
        await asyncio.to_thread(import_module, name)
        _imported.add(name)
