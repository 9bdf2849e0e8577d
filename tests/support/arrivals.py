"""A provider that records when the first byte of each request arrived. The kernel takes the time, so it is exact also
under load.

It runs as a process of its own, and answers OpenAI chat completions by the model's last word:

    steady    200 after 20 ms
    flaky     every third request is a 500, the others 200 after 20 ms
    failing   500
"""

import heapq
import json
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2

_SO_TIMESTAMPNS = 35  # from socket.h; Python has no name for it
_ANSWER = json.dumps(
    {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
).encode()  # fmt: skip
_DELAY_SECONDS = 0.02


class Arrival(NamedTuple):
    """`at` is Unix time; `tag` is the body's `user`."""

    at: float
    model: str
    tag: str | None


class Arrivals:
    def __init__(self, url: str) -> None:
        self.url = url

    def all(self) -> list[Arrival]:
        with httpx2.Client(timeout=60) as client:
            return [Arrival(*entry) for entry in client.get(f"{self.url}/arrivals").json()]

    def after(self, moment: float, *, model: str = "", tag: str = "") -> list[Arrival]:
        """Return the arrivals after `moment`, which a provider must not have seen."""
        return [
            arrival for arrival in self.all()
            if arrival.at > moment and model in {"", arrival.model} and tag in {"", arrival.tag}
        ]  # fmt: skip


@contextmanager
def arrivals() -> Iterator[Arrivals]:
    process = subprocess.Popen([sys.executable, "-P", __file__], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield Arrivals(process.stdout.readline().decode().strip())
    finally:
        process.kill()
        process.wait()


class _Connection:
    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.data = b""
        self.first_byte_at = 0.0


class _Server:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._due: list[tuple[float, int, _Connection, bytes]] = []
        self._arrivals: list[tuple[float, str, str | None]] = []
        self._count = 0

    def run(self) -> None:
        sys.stdout.write(f"http://127.0.0.1:{self._listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            wait = max(0.0, self._due[0][0] - time.monotonic()) if self._due else None
            for key, _ in self._selector.select(wait):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.data)
            while self._due and self._due[0][0] <= time.monotonic():
                *_, connection, answer = heapq.heappop(self._due)
                self._write(connection, answer)

    def _accept(self) -> None:
        wire, _ = self._listener.accept()
        wire.setblocking(False)
        wire.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._selector.register(wire, selectors.EVENT_READ, _Connection(wire))

    def _read(self, connection: _Connection) -> None:
        try:
            data, ancillary, _, _ = connection.wire.recvmsg(65536, 256)
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._selector.unregister(connection.wire)
            connection.wire.close()
            return
        if not connection.data:
            stamps = [struct.unpack("qq", value[:16]) for _, kind, value in ancillary if kind == _SO_TIMESTAMPNS]
            connection.first_byte_at = stamps[0][0] + stamps[0][1] / 1e9 if stamps else time.time()
        connection.data += data
        head, end, body = connection.data.partition(b"\r\n\r\n")
        if end and len(body) >= _length(head):
            connection.data = b""
            self._request(connection, head, body)

    def _request(self, connection: _Connection, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            self._answer(connection, json.dumps(self._arrivals).encode(), 200, 0)
            return
        request: dict[str, Any] = json.loads(body)
        self._arrivals.append((connection.first_byte_at, request["model"], request.get("user")))
        self._count += 1
        if request["model"].endswith("failing") or (request["model"].endswith("flaky") and self._count % 3 == 0):
            self._answer(connection, b"{}", 500, 0)
        else:
            self._answer(connection, _ANSWER, 200, _DELAY_SECONDS)

    def _answer(self, connection: _Connection, body: bytes, status: int, delay: float) -> None:
        answer = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        heapq.heappush(self._due, (time.monotonic() + delay, time.monotonic_ns(), connection, answer + body))

    def _write(self, connection: _Connection, answer: bytes) -> None:
        try:
            connection.wire.setblocking(True)
            connection.wire.sendall(answer)
            connection.wire.setblocking(False)
        except OSError:
            pass  # the gateway has closed the connection; the next read shows its end


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


if __name__ == "__main__":
    _Server().run()
