"""The first of several addresses that answers (RFC 8305, without its sorting: the resolver has done that)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Address = TypeVar("Address")
Won = TypeVar("Won")

#: Seconds that an address has for itself before the next one is tried beside it.
HEAD_START: Final = 0.25
#: Of a name's addresses, as many are tried.
_MOST: Final = 8


async def first(
    addresses: Sequence[Address], attempt: Callable[[Address], Awaitable[Won]], drop: Callable[[Won], None]
) -> Won:
    """`drop` is given what came second. Raises the last attempt's `OSError`."""
    if len(addresses) == 1:
        return await attempt(addresses[0])
    left = list(addresses[:_MOST])
    running: set[asyncio.Future[Won]] = set()
    try:
        while True:
            running.add(asyncio.ensure_future(attempt(left.pop(0))))
            while running:
                done, running = await asyncio.wait(
                    running, timeout=HEAD_START if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                won = [each for each in done if each.exception() is None]
                if won:
                    running.update(won[1:])
                    return won[0].result()
                if left:
                    break
                if not running:
                    raise next(iter(done)).exception() or OSError
    finally:
        for each in running:
            each.cancel()
            each.add_done_callback(lambda late: _dropped(late, drop))


def _dropped(late: "asyncio.Future[Won]", drop: Callable[[Won], None]) -> None:
    if not late.cancelled() and late.exception() is None:
        drop(late.result())
