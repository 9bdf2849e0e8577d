"""Callers: each sends the next request when it has the last answer, after a rest."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp


class Load:
    """`statuses` counts the answers; 0 stands for a connection that broke."""

    def __init__(self, url: str, rest_seconds: float) -> None:
        self._url = url
        self._rest_seconds = rest_seconds
        self.statuses: Counter[int] = Counter()
        self.ended = False

    async def until(self, answers: int, *, patience: float = 20.0) -> None:
        """Returns when so many more answers are there."""
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
            # Refusals take no time: without a longer rest they would be all that there is.
            await asyncio.sleep(self._rest_seconds if status == 200 else max(0.05, self._rest_seconds))


@asynccontextmanager
async def load(
    url: str, *callers: tuple[int, str, Mapping[str, Any]], rest_seconds: float = 0.01
) -> AsyncIterator[Load]:
    """`callers` are how many, with which key, and what they ask. Each rests between its requests: without it the
    load would take the whole processor from what starts or waits beside it."""
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
            async with asyncio.timeout(30):
                await asyncio.gather(*tasks)


def chat(model: str, *fallbacks: str, tag: str | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    if fallbacks:
        body["fallbacks"] = list(fallbacks)
    return body if tag is None else {**body, "user": tag}
