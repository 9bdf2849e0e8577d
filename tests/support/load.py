"""Load: callers that send the next request after the last answer and a pause."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp


class Load:
    """`statuses` counts the answers by status; 0 is a broken connection."""

    def __init__(self, url: str, rest_seconds: float) -> None:
        self._url = url
        self._rest_seconds = rest_seconds
        self.statuses: Counter[int] = Counter()
        self.ended = False

    async def until(self, answers: int, *, patience: float = 60.0) -> None:
        """Return after this many more answers."""
        expected = self.statuses.total() + answers
        async with asyncio.timeout(patience):
            while self.statuses.total() < expected:
                await asyncio.sleep(0.01)

    async def _call(self, session: aiohttp.ClientSession, key: str, body: Mapping[str, Any]) -> None:
        while not self.ended:
            try:
                async with session.post(
                    f"{self._url}/api/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}
                ) as answer:
                    await answer.read()
                    status = answer.status
            except (aiohttp.ClientError, OSError):
                status = 0
            self.statuses[status] += 1
            # Refusals are fast. Without a longer pause, nearly all answers would be refusals.
            await asyncio.sleep(self._rest_seconds if status == 200 else max(0.05, self._rest_seconds))


@asynccontextmanager
async def load(
    url: str, *callers: tuple[int, str, Mapping[str, Any]], rest_seconds: float = 0.01
) -> AsyncIterator[Load]:
    """Run callers with this key and request. Each pauses between its requests, so that the load does not use the whole
    processor."""
    running = Load(url, rest_seconds)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:
        tasks = [
            asyncio.create_task(running._call(session, key, body)) for count, key, body in callers for _ in range(count)
        ]
        try:
            yield running
        finally:
            running.ended = True
            async with asyncio.timeout(60):
                await asyncio.gather(*tasks)


def chat(model: str, *fallbacks: str, tag: str | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    if fallbacks:
        body["fallbacks"] = list(fallbacks)
    return body if tag is None else {**body, "user": tag}
