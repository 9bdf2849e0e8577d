"""A loop that ignores every error must check whether its task was cancelled (`foundation/tasks.py`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import gatehouse

SOURCE = Path(gatehouse.__file__).parent


def endless(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of `while True` loops in coroutines whose `except Exception` neither raises, returns nor
    breaks."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)):
        for loop in (node for node in ast.walk(function) if isinstance(node, ast.While)):
            if isinstance(loop.test, ast.Constant) and any(map(goes_on, loop.body)):
                yield loop.lineno


def goes_on(statement: ast.stmt) -> bool:
    """Return whether the statement ignores errors, by an `except` clause or by `contextlib.suppress(Exception)`."""
    if isinstance(statement, ast.Try):
        return any(catches_all(handler) and not leaves(handler) for handler in statement.handlers)
    return isinstance(statement, ast.With) and any(
        ast.unparse(item.context_expr).endswith("suppress(Exception)") for item in statement.items
    )


def catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or "Exception" in ast.unparse(handler.type).split(".")


def leaves(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise | ast.Return | ast.Break)


def test_no_loop_outlives_its_task() -> None:
    result = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in endless(ast.parse(path.read_text()))
    }
    assert result == set()
