"""Parses observed HTTP/1.1 bytes and reports them to the watch as exchanges. Other bytes are reported unchanged."""

from collections import deque
from collections.abc import Callable

import httptools
from tests.support.leaks import LeakDetector
from tests.support.watched import Exchange

#: Creates an exchange from a request's method, target and headers.
New = Callable[[str, str, list[tuple[str, str]]], Exchange]


class Asking:
    """The requests of a client. `waiting` has the requests without an answer, oldest first; their bodies may be
    incomplete."""

    def __init__(self, new: New) -> None:
        self.waiting: deque[Exchange] = deque()
        self._new = new
        self._parser = httptools.HttpRequestParser(self)
        self._broken = False

    def sent(self, data: bytes) -> None:
        # After bytes that no server would understand, nothing is reported.
        if not self._broken:
            try:
                self._parser.feed_data(bytes(data))
            except httptools.HttpParserUpgrade as offered:
                # Our servers decline upgrades, so the body follows, and then HTTP.
                self._last.hear(bytes(data)[offered.args[0] :])
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self._broken = True

    # callbacks of the parser

    def on_message_begin(self) -> None:
        self._target, self._headers = b"", list[tuple[str, str]]()

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        method, target = self._parser.get_method().decode(), self._target.decode("latin-1")
        self._last = self._new(method, target, self._headers)
        self.waiting.append(self._last)

    def on_body(self, part: bytes) -> None:
        self._last.hear(part)


class Talk:
    """Both directions of a connection. Call `over` at its end."""

    def __init__(self, new: New, watch: LeakDetector) -> None:
        self._asking = Asking(new)
        self._new = new
        self._watch = watch
        self._parser = httptools.HttpResponseParser(self)
        self._broken = False
        self._answering: Exchange | None = None
        self.sent = self._asking.sent

    def data_received(self, data: bytes) -> None:
        if not self._broken:
            try:
                self._parser.feed_data(bytes(data))
            except (httptools.HttpParserUpgrade, httptools.HttpParserError):
                self._broken = True
        if self._broken:
            self._watch.add_text("what stood on a wire", data)

    def over(self) -> None:
        """Report an incomplete answer, if there is one."""
        exchange, self._answering = self._answering, None
        if exchange is not None:
            exchange.tell(self._watch)

    # callbacks of the parser

    def on_message_begin(self) -> None:
        self._headers = list[tuple[bytes, bytes]]()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        waiting = self._asking.waiting
        self._answering = waiting.popleft() if waiting else self._new("?", "?", [])
        self._answering.status, self._answering.headers = status, self._headers

    def on_body(self, part: bytes) -> None:
        if self._answering is not None:
            self._answering.say(part)

    def on_message_complete(self) -> None:
        self.over()
