"""Work in steps, between which others may have their turn (`turns`)."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
#: Its result is what the generator returns.
Steps: TypeAlias = Generator[None, None, T]


def finish(steps: Steps[T]) -> T:
    """The result of work that is done at once."""
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            result: T = stopped.value
            return result
