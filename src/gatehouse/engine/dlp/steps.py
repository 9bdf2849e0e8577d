"""Work in steps. Between two steps the scheduler (`turns`) may run other work."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
#: A generator that yields after each step and returns the result.
Steps: TypeAlias = Generator[None, None, T]


def finish(steps: Steps[T]) -> T:
    """Run all steps without a pause, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
