"""The load of the soak: its client, its provider, and the results of the requests. The id of a request identifies it on
both sides."""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any

import aiohttp
from tests.support.upstream import Connection

PATH = "/v1/chat/completions"
#: price of an input token and of an output token in USD
PRICES = (Decimal("0.00000317"), Decimal("0.0000113"))


class Provider:
    """A provider whose answers are random. `reported_usage` maps a request to the usage in each of its complete
    answers."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.reported_usage: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.down = False

    async def __call__(self, connection: Connection) -> None:
        if not connection.body:
            await connection.answer(b"{}")
            return
        request = json.loads(connection.body)
        chance = self._dice.random()
        await asyncio.sleep(self._dice.random() * 0.02)
        if self.down or chance < 0.08:
            await connection.answer(b'{"error": {"message": "busy"}}', status=503)
        elif chance < 0.14:
            raise ConnectionError
        elif request.get("stream"):
            await self._stream(connection, request, leaves=chance < 0.2)
        elif chance < 0.2:
            await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{")
            raise ConnectionError
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": "word " * 40}, "finish_reason": "stop"}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            usage = self._usage()
            await connection.answer(json.dumps({**answer, "usage": spelled(usage)}).encode())
            self.reported_usage[request["user"]].append(usage)

    async def _stream(self, connection: Connection, request: dict[str, Any], *, leaves: bool) -> None:
        await connection.begin_stream()
        slow = request["model"] == "slow"
        for number in range(2000 if slow else 8):
            text = "word " * 200 if slow else f"word {number} "
            choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
            await connection.chunk(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
            if leaves and number == 3:
                raise ConnectionError
        usage = self._usage()
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        for event in (last, {"choices": [], "usage": spelled(usage)}):
            await connection.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()
        self.reported_usage[request["user"]].append(usage)

    def _usage(self) -> tuple[int, int]:
        return self._dice.randint(1, 50), self._dice.randint(1, 90)


def spelled(usage: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


@dataclass
class Load:
    """The clients. `became` maps the id of each request to its result for the client: `whole`, `refused`, `cut` (the
    gateway reported that the answer is incomplete), `left` (the client disconnected) or `broken` (no answer or no end
    of the answer, without an error)."""

    url: str
    key: str
    dice: random.Random
    became: dict[str, str] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    #: the codes of refusals
    codes: Counter[str] = field(default_factory=Counter)
    #: the time and the milliseconds of each request
    latencies: list[tuple[float, float]] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    ended: bool = False

    def _asking(self, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
        request_id = f"soak-{next(self.numbers)}"
        messages = [{"role": "user", "content": "How deep is the sea? " * 10}]
        return request_id, {"model": f"chance/{model}", "user": request_id, "stream": stream, "messages": messages}

    async def caller(self, pause: float) -> None:
        connector = aiohttp.TCPConnector(limit=1)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            while not self.ended:
                await asyncio.sleep(self.dice.random() * 2 * pause)
                request_id, body = self._asking("m", stream=self.dice.random() < 0.3)
                self.became[request_id] = "broken"
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    self.became[request_id] = await self._ask(session, request_id, body)

    async def _ask(self, session: aiohttp.ClientSession, request_id: str, body: dict[str, Any]) -> str:
        headers = {"Authorization": f"Bearer {self.key}", "X-Request-Id": request_id}
        leaves = self.dice.random() < 0.02
        began = time.monotonic()
        async with session.post(self.url + PATH, json=body, headers=headers) as answer:
            self.statuses[answer.status] += 1
            if leaves:
                if body["stream"]:
                    await answer.content.read(50)
                answer.close()
                return "left"
            response_body = await answer.read()
        if answer.status != 200:
            self.codes[json.loads(response_body)["error"]["code"]] += 1
            return "refused"
        if not body["stream"]:
            # Only these requests are counted, because they do the same work each time.
            self.latencies.append((began, (time.monotonic() - began) * 1000))
            return "whole"
        return (
            "whole"
            if response_body.rstrip().endswith(b"[DONE]")
            else "cut"
            if b'"error"' in response_body
            else "broken"
        )

    async def crowd(self) -> None:
        """Open connections with incomplete heads, and streams that are only partly read. Then close all at once."""
        writers = []
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        try:
            for number in range(60):
                reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
                writers.append(writer)
                if number % 3:
                    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ")
                    continue
                request_id, body = self._asking("slow", stream=True)
                self.became[request_id] = "left"
                content = json.dumps(body).encode()
                writer.write(
                    f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\n"
                    f"X-Request-Id: {request_id}\r\nContent-Length: {len(content)}\r\n\r\n".encode()
                    + content
                )
                await reader.read(200)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(20):
                for number, writer in enumerate(writers):
                    if number % 3:
                        writer.write(b"x")
                await asyncio.sleep(0.3)
        except OSError:
            # A worker was killed in the meantime.
            pass
        finally:
            for writer in writers:
                writer.transport.abort()
