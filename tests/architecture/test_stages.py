"""Stages return refusals, and do not raise them (docs/decisions/request-path.md)."""

import ast
from pathlib import Path
from typing import Final

STAGES: Final = Path(__file__).parents[2] / "src" / "gatehouse" / "engine" / "stages"


def raising(source: str) -> list[int]:
    """Return the lines of the `raise` statements of a module."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Raise)]


def test_no_stage_raises() -> None:
    modules = sorted(STAGES.rglob("*.py"))
    assert len(modules) > 20
    assert {path.name: lines for path in modules if (lines := raising(path.read_text("utf-8")))} == {}


def test_a_stage_that_raises_is_noticed() -> None:
    assert raising("def check(x):\n    if x:\n        raise ValueError\n") == [3]
