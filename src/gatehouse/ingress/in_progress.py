"""Model calls in progress on one worker: what draining waits for (reference 3, Maintenance mode)."""

from typing import Self


class InProgress:
    """`count` is how many there are."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def one(self) -> "InProgressCall":
        return InProgressCall(self)


class InProgressCall:
    """Counts from `let_in`, if it comes to that, to the end of its block."""

    __slots__ = ("_all", "_counted")

    def __init__(self, together: InProgress) -> None:
        self._all = together
        self._counted = 0

    def let_in(self) -> None:
        self._counted += 1
        self._all.count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._all.count -= self._counted
