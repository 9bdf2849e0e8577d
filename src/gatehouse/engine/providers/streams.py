"""A provider's stream on its way to the client: passing as it is, or converted event by event."""

from collections.abc import Iterator
from typing import Protocol

from gatehouse.engine.conversation.dialect import StreamReader, StreamWriter, Tap
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Ended, Faulted, Started, UsageTold
from gatehouse.engine.conversation.sse import EventTooLarge, Splitter, events
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.providers.failure import ProviderFailed

#: How an event's first line may begin.
_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")


class Stream(Protocol):
    @property
    def usage(self) -> Usage | None: ...

    def push(self, chunk: bytes) -> bytes:
        """The network's bytes in, whole events for the client out. Raises `ProviderFailed`; what was `ready` before
        the fault is given first, the fault at the next call."""

    def end(self) -> bytes:
        """The network's stream is over. Raises `ProviderFailed` when the answer is not complete."""


class _Cutting:
    """What both ways share: bytes become whole events, and a fault waits until what came before it was given."""

    __slots__ = ("_pending", "_splitter")

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._pending: ProviderFailed | None = None

    def push(self, chunk: bytes) -> bytes:
        if self._pending is not None:
            raise self._pending
        try:
            block = self._splitter.push(chunk)
        except EventTooLarge:
            raise ProviderFailed("bad_reply") from None
        if not block:
            return b""
        # Each block begins with an event, so a look at its head tells prose and pages from a stream.
        if not block.startswith(_STARTS) and not block.lstrip(b"\r\n\xef\xbb\xbf").startswith((*_STARTS, b"")[:5]):
            raise ProviderFailed("bad_reply")
        out = self._through(block)
        if self._pending is not None and not out:
            raise self._pending
        return out

    def end(self) -> bytes:
        out = b""
        if self._pending is None and self._splitter.rest.strip():
            # Some servers leave out the last event's blank line.
            self._splitter, rest = Splitter(), self._splitter.rest
            out = self._through(rest + b"\n\n")
        if self._pending is not None:
            raise self._pending
        if not self._complete():
            raise ProviderFailed("connection_closed", retryable=True)
        return out

    def _through(self, block: bytes) -> bytes:
        raise NotImplementedError

    def _complete(self) -> bool:
        raise NotImplementedError


class Passing(_Cutting):
    """Same dialect on both sides: bytes pass untouched, watched by the dialect's tap."""

    __slots__ = ("_tap",)

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap

    @property
    def usage(self) -> Usage | None:
        return self._tap.usage

    def _through(self, block: bytes) -> bytes:
        out = self._tap.take(block)
        if self._tap.fault is not None:
            self._pending = ProviderFailed("stream_error", retryable=True)
        return out

    def _complete(self) -> bool:
        return self._tap.complete()


class Converting(_Cutting):
    """Two dialects: every event is read into deltas and written from them."""

    __slots__ = ("_ended", "_finished", "_reader", "_usage", "_writer")

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._usage: Usage | None = None
        self._ended = False

    @property
    def usage(self) -> Usage | None:
        return self._usage

    def _through(self, block: bytes) -> bytes:
        return b"".join(self._converted(block))

    def _converted(self, block: bytes) -> Iterator[bytes]:
        for event in events(block):
            try:
                deltas = self._reader.read(event)
            except NotConvertible:
                self._pending = ProviderFailed("bad_reply")
                return
            for delta in deltas:
                match delta:
                    case Faulted():
                        self._pending = ProviderFailed("stream_error", retryable=True)
                        return
                    case UsageTold():
                        self._usage = delta.usage
                    case Started():
                        self._usage = delta.usage or self._usage
                    case Ended():
                        self._ended = True
                yield self._writer.write(delta)

    def _complete(self) -> bool:
        return self._ended
