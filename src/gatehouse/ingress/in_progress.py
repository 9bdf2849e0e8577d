"""Counts the model calls in progress on one worker. Draining in maintenance mode waits until there are none."""

from typing import Self


class InProgress:
    """The counter of one worker. `count` is the number of model calls in progress."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def one(self) -> "InProgressCall":
        return InProgressCall(self)


class InProgressCall:
    """A context manager that counts a call from `let_in` to the end of the block. Without `let_in`, the call is not
    counted."""

    __slots__ = ("_counted", "_total")

    def __init__(self, total: InProgress) -> None:
        self._total = total
        self._counted = 0

    def let_in(self) -> None:
        self._counted += 1
        self._total.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._total.count -= self._counted
