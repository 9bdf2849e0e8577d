"""Work on long texts, in a thread beside the event loop: other requests go on meanwhile.

One thread a process: scanning holds the interpreter's lock, so that more would only take turns with the loop. Texts
wait in line for it; a line that is too long refuses.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from gatehouse.engine.dlp.errors import DlpUnavailable

T = TypeVar("T")

#: Code points of a text that is worth the way to the thread and back.
LONG: Final = 8 * 1024
#: Texts that wait at most.
_MOST_WAITING: Final = 64

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-texts")
_waiting = 0


class Abandoned(Exception):
    """Nobody waits for the result any more."""


class GivenUp:
    """Asked by long work from time to time: whoever wanted it may have left."""

    __slots__ = ("yes",)

    def __init__(self) -> None:
        self.yes = False

    def check(self) -> None:
        if self.yes:
            raise Abandoned


#: For work that is done before anybody can leave.
_WANTED: Final = GivenUp()


async def beside(size: int, work: Callable[[GivenUp], T]) -> T:
    """What the work on `size` code points gives: done at once where they are few, else in the thread. Raises
    `DlpUnavailable` where too many wait."""
    if size <= LONG:
        return work(_WANTED)
    given_up = GivenUp()
    global _waiting  # noqa: PLW0603 - the process has one thread, and one line in front of it
    if _waiting >= _MOST_WAITING:
        raise DlpUnavailable("Too many long texts wait for inspection. Try again.", headers={"Retry-After": "5"})
    _waiting += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_thread, work, given_up)
    finally:
        given_up.yes = True
        _waiting -= 1
