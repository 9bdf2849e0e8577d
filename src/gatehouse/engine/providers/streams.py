"""A provider's stream on its way to the client: passing as it is, or converted event by event."""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from gatehouse.engine.conversation.dialect import StreamReader, StreamWriter, Tap
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Ended, Faulted, Finished, Started, UsageTold
from gatehouse.engine.conversation.sse import EventTooLarge, Splitter, data_of, events
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.estimate import BYTES_A_TOKEN
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.failure import ProviderFailed

#: How an event's first line may begin.
_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")


class Stream(Protocol):
    @property
    def usage(self) -> Usage | None: ...

    @property
    def finished(self) -> bool:
        """Whether the provider said that nothing follows."""

    @property
    def complete(self) -> bool:
        """Whether the answer is all there."""

    @property
    def output_estimate(self) -> int:
        """Tokens so far, by the number of events and by the size of their texts: the larger of the two."""

    def push(self, chunk: bytes) -> bytes:
        """The network's bytes in, whole events for the client out. Raises `ProviderFailed`; what was `ready` before
        the fault is given first, the fault at the next call."""

    def end(self) -> bytes:
        """The network's stream is over. Raises `ProviderFailed` when the answer is not complete."""


class _Cutting:
    """What both ways share: bytes become whole events, and a fault waits until what came before it was given."""

    __slots__ = ("_bytes", "_largest", "_lines", "_lines_an_event", "_pending", "_splitter", "complete")

    def __init__(self) -> None:
        self.complete = False
        self._bytes = 0
        #: the largest block so far: tells how much of an event's bytes is text
        self._largest = b""
        self._lines = 0
        self._lines_an_event = 2
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
        self._look(block)
        out = self._through(block)
        if self._pending is not None and not out:
            raise self._pending
        return out

    def end(self) -> bytes:
        out = b""
        rest = self._splitter.take_rest() if self._pending is None else b""
        if rest.strip():
            # Some servers leave out the last event's blank line.
            self._look(rest)
            out = self._through(rest + b"\n\n")
        if self._pending is not None:
            raise self._pending
        last = self._last()
        if last is None:
            raise ProviderFailed("connection_closed", retryable=True)
        self.complete = True
        return out + last

    @property
    def output_estimate(self) -> int:
        passed = self._lines // self._lines_an_event
        framing = guess.framing_bytes(self._largest)
        if framing is None:
            return passed
        return max(passed, int(self._bytes - passed * framing) // BYTES_A_TOKEN)

    def _look(self, block: bytes) -> None:
        """Each block begins with an event, so a look at its head tells prose and pages from a stream."""
        if not block.startswith(_STARTS) and not _may_begin(block):
            raise ProviderFailed("bad_reply")
        if not self._lines and block.startswith(b"event:"):
            self._lines_an_event = 3
        # One byte is found many times faster than two: the events are worked out when somebody asks.
        self._lines += block.count(b"\n")
        self._bytes += len(block)
        if len(block) > len(self._largest):
            self._largest = block

    def _through(self, block: bytes) -> bytes:
        raise NotImplementedError

    def _last(self) -> bytes | None:
        """What is still to be said at the end; None when the answer is not complete."""
        raise NotImplementedError


class Passing(_Cutting):
    """Same dialect on both sides: bytes pass untouched, watched by the dialect's tap."""

    __slots__ = ("_begun", "_tap")

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap
        self._begun = False

    @property
    def usage(self) -> Usage | None:
        return self._tap.usage

    @property
    def finished(self) -> bool:
        return self._tap.finished

    def _through(self, block: bytes) -> bytes:
        if not self._begun:
            block = self._beginning(block)
            if not block:
                return b""
        out = self._tap.take(block)
        if self._tap.fault is not None:
            self._pending = ProviderFailed("stream_error", retryable=True)
        return out

    def _beginning(self, block: bytes) -> bytes:
        """The block from its first event with data on. Comments before it are dropped: they begin nothing, and until
        something is sent another candidate can still answer. So the first data must be JSON, too."""
        position = 0
        for event in events(block):
            data = data_of(event)
            if data:
                self._begun = True
                if data != b"[DONE]" and not _is_object(data):
                    raise ProviderFailed("bad_reply")
                return block[position:]
            position += len(event)
        return b""

    def _last(self) -> bytes | None:
        return b"" if self._tap.complete() else None


class Converting(_Cutting):
    """Two dialects: every event is read into deltas and written from them."""

    __slots__ = ("_model", "_reader", "_reason_told", "_usage", "_writer", "finished")

    def __init__(self, reader: StreamReader, writer: StreamWriter, model: str = "") -> None:
        """`model` is the name that the client asked for, or empty to keep the provider's."""
        super().__init__()
        self._model = model
        self._reader = reader
        self._writer = writer
        self._usage: Usage | None = None
        self._reason_told = False
        self.finished = False

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
                        yield self._writer.write(msgspec.structs.replace(delta, model=self._model or delta.model))
                        continue
                    case Finished():
                        self._reason_told = True
                    case Ended():
                        self.finished = True
                yield self._writer.write(delta)

    def _last(self) -> bytes | None:
        if self.finished:
            return b""
        # Some servers leave out the end's own event; a reason to finish is as good.
        self.finished = self._reason_told
        return self._writer.write(Ended()) if self._reason_told else None


def _may_begin(block: bytes) -> bool:
    head = block.lstrip(b"\r\n\xef\xbb\xbf")
    return not head or head.startswith(_STARTS)


class _Object(msgspec.Struct):
    pass


_object = msgspec.json.Decoder(_Object)


def _is_object(data: bytes) -> bool:
    try:
        _object.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
