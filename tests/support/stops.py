"""Notes the order in which a host stops its parts."""

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

import pytest


def note_stops(monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, Any]) -> list[str]:
    """Return a list to which the calls of these methods are added. Names of `parts` end with the method's name, for
    example `journal.close`. The methods still do their work."""
    stopped: list[str] = []
    for name, part in parts.items():
        method = name.rpartition(".")[2]
        monkeypatch.setattr(part, method, _noted(name, getattr(part, method), stopped))
    return stopped


def _noted(name: str, stop: Callable[..., Any], stopped: list[str]) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        stopped.append(name)
        result = stop(*arguments)
        return _awaited(result) if isawaitable(result) else result

    return called


async def _awaited(result: Any) -> Any:
    return await result
