"""Measures the processor time for reading a request and writing its answer, for each ingress.

    .venv/bin/python -m bench.ingress

Both ingresses use the same engine, which reads the body and returns a prepared answer, so the remaining time is that of
the ingress. The processor time of this thread per request is measured. A separate process sends the requests on several
connections, and sends the next request on a connection when the previous one has been answered. The two ingresses take
turns on one event loop, and each round begins with the other one. The minimum and the median of all rounds are printed,
because other work on the machine only adds time.
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
import uvloop

from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.ingress.gateway import Gateway
from gatehouse.ingress.in_progress import InProgress
from gatehouse.ingress.protocol_choice import protocol_of

WORDS = " ".join(["word"] * 60)
REQUEST_BODY = json.dumps({"model": "sandbox/echo", "messages": [{"role": "user", "content": WORDS}]}).encode()
BODY = json.dumps({"id": "c-1", "choices": [{"message": {"role": "assistant", "content": WORDS * 2}}]}).encode()
EVENT = b'data: {"id":"c-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
EVENTS = 50
HEADERS = {
    "content-type": "application/json", "X-Gateway-Provider": "sandbox", "X-Gateway-Model": "echo",
    "X-Gateway-Fallbacks": "0", "X-DLP-Action": "ALLOW", "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "59",
    "X-RateLimit-Reset": "1700000000", "X-Cost-USD": "0.000123",
}  # fmt: skip
HEAD = (
    "POST /v1/{} HTTP/1.1\r\nHost: gateway.example.com\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    "Accept: application/json\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Python 1.2.3\r\n"
    "Authorization: Bearer gk_0123456789abcdef0123456789abcdef\r\nContent-Length: {}\r\n\r\n"
)
#: The path of each kind of request. The path for Anthropic's API returns a stream. A request that is handed on goes to
#: a minimal ASGI application.
PATHS = {"plain": "chat/completions", "stream of 50": "messages", "handed on": "elsewhere"}


class Echo:
    """An engine that needs almost no time."""

    async def answer(
        self, x: Received, read: Callable[[], Awaitable[bytes]], on_admitted: Callable[[], None]
    ) -> Answer:
        await read()
        on_admitted()
        if x.dialect == "openai_chat":
            return Answer(status=200, headers=dict(HEADERS), body=BODY)
        return Answer(status=200, headers=dict(HEADERS), stream=events())


async def events() -> AsyncIterator[bytes]:
    for _ in range(EVENTS):
        yield EVENT
        # Each event arrives separately, like the events of a provider.
        await asyncio.sleep(0)


async def behind(scope: Any, receive: Any, send: Any) -> None:
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(BODY))]})
    await send({"type": "http.response.body", "body": BODY})


@asynccontextmanager
async def running_ingress(ingress: Any) -> AsyncIterator[int]:
    gateway = Gateway(
        Echo(),  # type: ignore[arg-type]
        behind,
        addresses=ClientAddresses(()),
        max_request_bytes=10_000_000,
        body_timeout_seconds=60,
        calls=InProgress(),
    )
    config = uvicorn.Config(
        gateway, http=protocol_of(ingress, lambda: gateway), lifespan="off", log_config=None, access_log=False,
        ws="none", server_header=False, proxy_headers=False, timeout_keep_alive=75,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server._serve(sockets=[listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield listener.getsockname()[1]
        server.should_exit = True
        await task


async def engine_alone(requests: int) -> float:
    """Return the CPU time of the engine per request, in microseconds."""
    echo = Echo()
    x = Received(
        request_id="r", method="POST", path="/", headers={}, client_address="", received_at=0, started=0,
        dialect="openai_chat",
    )  # fmt: skip

    async def read() -> bytes:
        return REQUEST_BODY

    began = time.thread_time()
    for _ in range(requests):
        await echo.answer(x, read, lambda: None)
    return (time.thread_time() - began) / requests * 1e6


async def cost(port: int, path: str, requests: int, connections: int) -> float:
    command = [sys.executable, "-m", "bench.ingress", "--ask", f"{port} {path} {requests} {connections}"]
    client = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert client.stdin is not None
    assert client.stdout is not None
    await client.stdout.readline()
    began = time.thread_time()
    client.stdin.write(b"\n")
    assert await client.stdout.readline() == b"done\n"
    spent = time.thread_time() - began
    await client.wait()
    return spent / requests * 1e6


class LoadConnection(asyncio.Protocol):
    """Sends the remaining requests of a connection, one after the other."""

    def __init__(self, request_bytes: bytes, left: list[int], done: asyncio.Event) -> None:
        #: the request, the number of requests still to send, and the future that completes at the end
        self._request_bytes, self._left, self._done = request_bytes, left, done
        self._ends = b"0\r\n\r\n" if b"/messages" in request_bytes else BODY
        self._seen = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def ask(self) -> None:
        if self._left[0]:
            self._left[0] -= 1
            self._transport.write(self._request_bytes)

    def data_received(self, data: bytes) -> None:
        self._seen = (self._seen + data)[-len(self._ends) :]
        if self._seen != self._ends:
            return
        self._seen = b""
        self._left[1] -= 1
        if not self._left[1]:
            self._done.set()
        self.ask()


async def ask(port: int, path: str, requests: int, connections: int) -> None:
    loop, left, done = asyncio.get_running_loop(), [requests, requests], asyncio.Event()
    request_bytes = HEAD.format(path, len(REQUEST_BODY)).encode() + REQUEST_BODY
    all_of_them = [
        (await loop.create_connection(lambda: LoadConnection(request_bytes, left, done), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    for item in all_of_them:
        item.ask()
    await done.wait()
    print("done", flush=True)


async def measure(rounds: int, requests: int, connections: int) -> None:
    print(f"engine alone: {min([await engine_alone(10_000) for _ in range(5)]):.1f} us")
    print(f"{'CPU us per request':20}{'ingress':>10}{'least':>8}{'median':>8}")
    async with running_ingress("lean") as lean, running_ingress("uvicorn") as asgi:
        for kind, path in PATHS.items():
            result: dict[str, list[float]] = {"uvicorn": [], "lean": []}
            for number in range(rounds + 1):
                order = [("uvicorn", asgi), ("lean", lean)]
                for name, port in order if number % 2 else reversed(order):
                    some = requests // 10 if kind.startswith("stream") else requests
                    spent = await cost(port, path, some, connections)
                    if number:
                        result[name].append(spent)
            for name, costs in result.items():
                print(f"{kind:20}{name:>10}{min(costs):8.1f}{statistics.median(costs):8.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        port, path, requests, connections = arguments.ask.split()
        uvloop.run(ask(int(port), path, int(requests), int(connections)))
    else:
        uvloop.run(measure(arguments.rounds, arguments.requests, arguments.connections))


if __name__ == "__main__":
    main()
