"""Streams of providers for the client: passed through unchanged, or converted event by event."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from gatehouse.engine.conversation.conversion.lost import HEADER, MAX_NAMES, header, unshown
from gatehouse.engine.conversation.dialect import StreamReader, StreamWriter, Tap
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import (
    Delta,
    GenerationFinished,
    PartsLost,
    Reasoning,
    ReasoningDelta,
    ReasoningSigned,
    StreamEnded,
    StreamFailed,
    StreamStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import EventTooLarge, Splitter, data_of, events
from gatehouse.engine.conversation.usage import Usage
from gatehouse.engine.money.estimate import BYTES_A_TOKEN
from gatehouse.engine.providers import guess
from gatehouse.engine.providers.failure import ProviderFailed

#: The name under which lost reasoning is reported to the client.
LOST_REASONING: Final = "answer.reasoning"
#: Replaces the text of reasoning where it only matters that there is a text.
_ANY_TEXT: Final = "text"
#: Prefixes of an event's first line.
_LINE_PREFIXES = (b"data:", b"event:", b":", b"id:", b"retry:")


class Stream(Protocol):
    @property
    def usage(self) -> Usage | None: ...

    @property
    def finished(self) -> bool:
        """Return whether the provider has sent its end event."""

    @property
    def complete(self) -> bool:
        """Return whether the answer is complete."""

    @property
    def output_estimate(self) -> int:
        """Output tokens so far: the larger of the number of events and an estimate by the size of their texts."""

    @property
    def lost_parts(self) -> tuple[str, ...]:
        """Return the names of the parts so far that the client does not receive."""

    def push(self, chunk: bytes) -> bytes:
        """Accept bytes of the network, and return whole events for the client. Raises `ProviderFailed`; events before a
        fault are returned first, and the next call raises the fault."""

    def end(self) -> bytes:
        """Return the last events at the end of the network's stream. Raises `ProviderFailed` if the answer is not
        complete."""


class _EventStream:
    """Base of both streams: splits bytes into whole events, and defers a fault until the events before it were
    returned."""

    __slots__ = ("_bytes", "_fault", "_largest", "_lines", "_lines_per_event", "_splitter", "complete")

    def __init__(self) -> None:
        self.complete = False
        self._bytes = 0
        #: the largest block so far, from which the framing bytes of an event are estimated
        self._largest = b""
        self._lines = 0
        self._lines_per_event = 2
        self._splitter = Splitter()
        self._fault: ProviderFailed | None = None

    def push(self, chunk: bytes) -> bytes:
        if self._fault is not None:
            raise self._fault
        try:
            block = self._splitter.push(chunk)
        except EventTooLarge:
            raise ProviderFailed("bad_reply") from None
        if not block:
            return b""
        self._check(block)
        out = self._convert(block)
        if self._fault is not None and not out:
            raise self._fault
        return out

    def end(self) -> bytes:
        out = b""
        rest = self._splitter.take_rest() if self._fault is None else b""
        if rest.strip():
            # Some servers omit the blank line after the last event.
            self._check(rest)
            out = self._convert(rest + b"\n\n")
        if self._fault is not None:
            raise self._fault
        final = self._final_events()
        if final is None:
            raise ProviderFailed("connection_closed", retryable=True)
        self.complete = True
        return out + final

    @property
    def output_estimate(self) -> int:
        event_count = self._lines // self._lines_per_event
        framing = guess.framing_bytes(self._largest)
        if framing is None:
            return event_count
        return max(event_count, int(self._bytes - event_count * framing) // BYTES_A_TOKEN)

    def _check(self, block: bytes) -> None:
        """Count a block, and check its first bytes: each block begins with an event, unlike text and HTML pages."""
        if not block.startswith(_LINE_PREFIXES) and not _may_start(block):
            raise ProviderFailed("bad_reply")
        if not self._lines and block.startswith(b"event:"):
            self._lines_per_event = 3
        # Counting one byte is many times faster than counting two. So lines are counted here, and the number of events
        # is computed from the lines when it is needed.
        self._lines += block.count(b"\n")
        self._bytes += len(block)
        if len(block) > len(self._largest):
            self._largest = block

    def _convert(self, block: bytes) -> bytes:
        raise NotImplementedError

    def _final_events(self) -> bytes | None:
        """Return the events that are missing at the end; None if the answer is not complete."""
        raise NotImplementedError


class Passing(_EventStream):
    """A stream with the same dialect on both sides: bytes pass unchanged, and the dialect's tap reads them."""

    __slots__ = ("_started", "_tap")

    lost_parts: tuple[str, ...] = ()

    def __init__(self, tap: Tap) -> None:
        super().__init__()
        self._tap = tap
        self._started = False

    @property
    def usage(self) -> Usage | None:
        return self._tap.usage

    @property
    def finished(self) -> bool:
        return self._tap.finished

    def _convert(self, block: bytes) -> bytes:
        if not self._started:
            block = self._from_first_data(block)
            if not block:
                return b""
        out = self._tap.take(block)
        if self._tap.fault is not None:
            self._fault = ProviderFailed("stream_error", retryable=True)
        return out

    def _from_first_data(self, block: bytes) -> bytes:
        """Return the block from its first event with data. Comments before it are dropped, because another candidate
        can only answer while nothing has been sent. For the same reason the first data must be JSON."""
        position = 0
        for event in events(block):
            data = data_of(event)
            if data:
                self._started = True
                if data != b"[DONE]" and not _is_object(data):
                    raise ProviderFailed("bad_reply")
                return block[position:]
            position += len(event)
        return b""

    def _final_events(self) -> bytes | None:
        return b"" if self._tap.complete() else None


class Converting(_EventStream):
    """A stream between two dialects: every event is converted to deltas, and the deltas are written as events. At the
    end, a comment names the parts that were left out, because they were unknown when the headers were sent."""

    __slots__ = (
        "_client", "_has_finish_reason", "_has_unsigned", "_hides", "_lost", "_model", "_reader", "_stop_sequence",
        "_usage", "_writer", "finished",
    )  # fmt: skip

    def __init__(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        model: str = "",
        hides: Callable[[Reasoning], bool] | None = None,
        client: str = "",
    ) -> None:
        """`model` is the name that the client requested, or empty to keep the provider's. `hides` returns whether the
        writer leaves out a piece of reasoning. `client` is the client's dialect."""
        super().__init__()
        self._client = client
        self._stop_sequence: str | None = None
        self._hides = hides
        self._lost: dict[str, None] = {}
        #: whether a text of reasoning was sent whose signature may follow
        self._has_unsigned = False
        self._model = model
        self._reader = reader
        self._writer = writer
        self._usage: Usage | None = None
        self._has_finish_reason = False
        self.finished = False

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def lost_parts(self) -> tuple[str, ...]:
        return tuple(self._lost)

    def _convert(self, block: bytes) -> bytes:
        return b"".join(self._converted(block))

    def _converted(self, block: bytes) -> Iterator[bytes]:
        for event in events(block):
            try:
                deltas = self._reader.read(event)
            except NotConvertible:
                self._fault = ProviderFailed("bad_reply")
                return
            for delta in deltas:
                self._note_reasoning(delta)
                match delta:
                    case StreamFailed():
                        self._fault = ProviderFailed("stream_error", retryable=True)
                        return
                    case UsageDelta():
                        self._usage = delta.usage
                    case StreamStarted():
                        self._usage = delta.usage or self._usage
                        yield self._writer.write(msgspec.structs.replace(delta, model=self._model or delta.model))
                        continue
                    case GenerationFinished():
                        self._has_finish_reason = True
                        self._stop_sequence = delta.stop_sequence
                    case PartsLost():
                        self._lose(*delta.names)
                        continue
                    case StreamEnded():
                        self.finished = True
                        yield self._dropped()
                yield self._writer.write(delta)

    def _note_reasoning(self, delta: Delta) -> None:
        """Notes reasoning that the writer leaves out."""
        match delta:
            case ReasoningDelta():
                self._has_unsigned = True
            case ReasoningSigned():
                text = _ANY_TEXT if self._has_unsigned else ""
                self._note(Reasoning(text=text, signature=delta.signature, is_sealed=delta.is_sealed))
            case UsageDelta() | PartsLost():
                pass
            case _ if self._has_unsigned:
                self._note(Reasoning(text=_ANY_TEXT))

    def _note(self, reasoning: Reasoning) -> None:
        self._has_unsigned = False
        if self._hides is not None and self._hides(reasoning):
            self._lose(LOST_REASONING)

    def _lose(self, *names: str) -> None:
        for name in names[: MAX_NAMES - len(self._lost)]:
            self._lost[name] = None

    def _dropped(self) -> bytes:
        """Return the comment with the names of the parts that were left out; empty if there are none."""
        self._lose(*unshown(self._client, self._stop_sequence, self._usage))
        return f": {HEADER}: {header(self._lost)}\n\n".encode() if self._lost else b""

    def _final_events(self) -> bytes | None:
        if self.finished:
            return b""
        # Some servers omit the end event; a finish reason is equivalent.
        self.finished = self._has_finish_reason
        return self._dropped() + self._writer.write(StreamEnded()) if self._has_finish_reason else None


def _may_start(block: bytes) -> bool:
    head = block.lstrip(b"\r\n\xef\xbb\xbf")
    return not head or head.startswith(_LINE_PREFIXES)


class _Object(msgspec.Struct):
    pass


_object = msgspec.json.Decoder(_Object)


def _is_object(data: bytes) -> bool:
    try:
        _object.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
