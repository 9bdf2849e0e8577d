"""Measures the time of a prompt of 10,000 characters alone, and while ten hostile bodies of 1 MB of another user wait.

    .venv/bin/python -m bench.dlp.neighbours

The complete engine runs in one process over a provider that answers at once. The two cases take turns, and the medians
of the rounds are printed.
"""

import asyncio
import base64
import random
import statistics
from collections.abc import Iterator
from time import perf_counter
from uuid import UUID

import msgspec
from bench.engine import settled
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.exchange import Received
from gatehouse.foundation.identity import Caller

PROMPT = "Please summarise the quarterly report for the leadership team; revenue grew by 12 percent. " * 112
ROUNDS = 7
NEIGHBOURS = 10
BYTES = 1_000_000


def hostile() -> Iterator[tuple[str, str]]:
    numbers = random.Random(3)
    encoded = " ".join(base64.b64encode(numbers.randbytes(15)).decode() for _ in range(BYTES // 20))
    yield "short base64", encoded[:BYTES]
    yield "card numbers", ("4242424242424242 " * (BYTES // 17))[:BYTES]
    yield "entities", "&#52;" * (BYTES // 5)
    yield "escapes", "\\n\\t" * (BYTES // 4)
    yield "addresses", ("a@b.co " * (BYTES // 7))[:BYTES]


class Users(EngineHarness):
    """An engine for several users. A header of the request names the user."""

    def identify(self, received: Received) -> Caller:
        return msgspec.structs.replace(super().identify(received), user_id=UUID(int=int(received.headers["user"])))


async def ask(harness: EngineHarness, text: str, user: int) -> float:
    """Make a request, and return its time in seconds."""
    request = harness.request({"model": "one/m", "messages": [{"role": "user", "content": text}]})
    request.headers = {"user": str(user)}
    harness.outbound.script.append((200, [completion()]))
    began = perf_counter()
    answer = await harness.engine.answer(request)
    assert answer.status == 200, answer.body
    return perf_counter() - began


async def beside(harness: EngineHarness, text: str) -> float:
    """Return the time of the prompt while the bodies of the other user wait."""
    neighbours = [asyncio.ensure_future(ask(harness, text, 2)) for _ in range(NEIGHBOURS)]
    while SCHEDULER.waiting < NEIGHBOURS:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.1)
    seconds = await ask(harness, PROMPT[:10_000], 1)
    for neighbour in neighbours:
        neighbour.cancel()
    await asyncio.gather(*neighbours, return_exceptions=True)
    while SCHEDULER.waiting:
        await asyncio.sleep(0.001)
    harness.outbound.script.clear()
    return seconds


async def main() -> None:
    harness = Users(RATE_LIMIT_REQUESTS_PER_MINUTE="100000000")
    harness.serve("one", "m")
    await settled(harness)
    await ask(harness, PROMPT[:10_000], 1)
    for name, text in hostile():
        pairs = [(await ask(harness, PROMPT[:10_000], 1), await beside(harness, text)) for _ in range(ROUNDS)]
        alone, among = (statistics.median(seconds) * 1000 for seconds in zip(*pairs, strict=True))
        worst = max(seconds for _, seconds in pairs) * 1000
        print(
            f"{name:14} alone {alone:6.1f} ms, beside {among:6.1f} ms ({among / alone:.1f} times), worst {worst:.1f} ms"
        )


if __name__ == "__main__":
    asyncio.run(main())
