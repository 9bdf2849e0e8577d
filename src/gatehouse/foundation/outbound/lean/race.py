"""Connects to the first of several addresses that responds (Happy Eyeballs, RFC 8305). The resolver has sorted the
addresses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Address = TypeVar("Address")
Result = TypeVar("Result")

#: time after which the next address is tried while the attempts before it continue
ATTEMPT_DELAY_SECONDS: Final = 0.25
#: maximum number of addresses of a name that are tried
_MAX_ADDRESSES: Final = 8


async def first(
    addresses: Sequence[Address], attempt: Callable[[Address], Awaitable[Result]], drop: Callable[[Result], None]
) -> Result:
    """Returns the result of the first successful attempt. Later results are passed to `drop`. If all attempts fail,
    raises the `OSError` of the last one."""
    if len(addresses) == 1:
        return await attempt(addresses[0])
    remaining = list(addresses[:_MAX_ADDRESSES])
    running: set[asyncio.Future[Result]] = set()
    try:
        while True:
            running.add(asyncio.ensure_future(attempt(remaining.pop(0))))
            while running:
                done, running = await asyncio.wait(
                    running, timeout=ATTEMPT_DELAY_SECONDS if remaining else None, return_when=asyncio.FIRST_COMPLETED
                )
                succeeded = [future for future in done if future.exception() is None]
                if succeeded:
                    running.update(succeeded[1:])
                    return succeeded[0].result()
                if remaining:
                    break
                if not running:
                    raise next(iter(done)).exception() or OSError
    finally:
        for future in running:
            future.cancel()
            future.add_done_callback(lambda late: _drop_result(late, drop))


def _drop_result(late: "asyncio.Future[Result]", drop: Callable[[Result], None]) -> None:
    if not late.cancelled() and late.exception() is None:
        drop(late.result())
