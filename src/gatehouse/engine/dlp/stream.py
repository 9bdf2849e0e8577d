"""A stream's events in order, each held back until all of its texts may go on.

Events that nothing is changed in go on as the bytes they came in. Held back is only what a finding may still reach;
with `hold`, everything until the end.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from gatehouse.engine.conversation.sse import events, frame
from gatehouse.engine.conversation.view import EventView, Piece
from gatehouse.engine.dlp.channel import Channel
from gatehouse.engine.dlp.decide import Found, Hit
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.foundation.errors import Refusal


class _Waiting(msgspec.Struct, gc=False):
    """An event, and where in their channels its pieces lie."""

    event: bytes
    view: EventView | None
    places: list[tuple[Piece, Channel, int, int]]


class StreamGuard:
    """One stream's. After a `refusal` nothing more comes; while a hit `asks`, nothing comes until `go_on`."""

    def __init__(self, view: Callable[[bytes], EventView | None], examiner: Examiner) -> None:
        self._view = view
        self._examiner = examiner
        self._hold = examiner.options.stream_mode == "hold"
        self._channels: dict[str, Channel] = {}
        self._waiting: deque[_Waiting] = deque()
        self._whole_pieces = 0
        #: the texts for the semantic tier, which reads them when they have gone on; none where no rule asks for it
        self._gone: dict[str, list[str]] | None = None
        if not self._hold and examiner.inspection.policy.labels:
            self._gone = {}
        self.refusal: Refusal | None = None
        self.asks: Hit | None = None

    @property
    def waits(self) -> bool:
        """Whether it came to its end, or to a question."""
        return self.refusal is not None or self.asks is not None

    async def push(self, block: bytes) -> bytes:
        """Whole events in, what of them and those before may go on out. Raises `Unreadable`."""
        touched: set[str] = set()
        ended: set[str] = set()
        for event in events(block):
            view = self._view(event)
            places = []
            for piece in view.pieces if view is not None else ():
                name, channel = self._channel(piece)
                start = channel.end
                places.append((piece, channel, start, channel.push(piece.text)))
                if self._gone is not None:
                    self._gone.setdefault(name, []).append(piece.text)
                (ended if piece.whole else touched).add(name)
            if view is not None and view.ends:
                ended |= {name for name in self._channels if name.startswith(view.ends)}
            self._waiting.append(_Waiting(event, view, places))
        if self._hold:
            return b""
        for name in touched - ended:
            await self._channels[name].advance(final=False)
        for name in ended:
            await self._channels.pop(name).advance(final=True)
        return self._drain()

    async def finish(self) -> bytes:
        """The stream is over: everything that is left."""
        if self._hold:
            await self._whole()
        else:
            for channel in self._channels.values():
                await channel.advance(final=True)
            if self._gone is not None:
                await self._too_late(["".join(pieces) for pieces in self._gone.values()])
        return self._drain()

    async def _too_late(self, texts: list[str]) -> None:
        for labels in await self._examiner.labels_of(texts):
            self._examiner.inspection.note_late(Found(labels=labels), self._examiner.direction)

    def go_on(self) -> bytes:
        """A person approved."""
        self.asks = None
        for waiting in self._waiting:
            for _, channel, _, _ in waiting.places:
                if channel.asks is not None:
                    channel.go_on()
        return self._drain()

    def _channel(self, piece: Piece) -> tuple[str, Channel]:
        # A text that comes in one piece is nobody's continuation, whatever it is called.
        self._whole_pieces += piece.whole
        name = f"{piece.channel}#{self._whole_pieces}" if piece.whole else piece.channel
        channel = self._channels.get(name)
        if channel is None:
            channel = Channel(self._examiner, json_text=piece.json_text, scans=not self._hold)
            self._channels[name] = channel
        return name, channel

    async def _whole(self) -> None:
        """Each text of the whole stream, through all tiers."""
        for channel in self._channels.values():
            text = channel.text
            [found] = await self._examiner.whole([text], json_text=channel.json_text)
            channel.whole(text, found)

    def _drain(self) -> bytes:
        out: list[bytes] = []
        while self._waiting and self.refusal is None and self.asks is None:
            waiting = self._waiting[0]
            held = next((place for place in waiting.places if place[1].released < place[3]), None)
            if held is None:
                self._waiting.popleft()
                out.append(self._released(waiting))
                continue
            _, channel, start, _ = held
            if channel.stopped is not None:
                if channel.released > start:
                    out.append(self._cut_off(waiting))
                self._examiner.inspection.did("BLOCK")
                self.refusal = violation(channel.stopped, "BLOCK", self._examiner.options.block_status)
                self._waiting.clear()
            self.asks = channel.asks
            break
        return b"".join(out)

    def _released(self, waiting: _Waiting) -> bytes:
        changed = False
        for piece, channel, start, end in waiting.places:
            if channel.changed(start, end):
                piece.holder[piece.key] = channel.take(start, end)
                changed = True
            else:
                channel.drop(end)
        return _encoded(waiting.view) if changed and waiting.view is not None else waiting.event

    def _cut_off(self, waiting: _Waiting) -> bytes:
        """The event with as much of its texts as may go on."""
        for piece, channel, start, end in waiting.places:
            allowed = max(start, min(end, channel.released))
            piece.holder[piece.key] = channel.take(start, allowed)
        assert waiting.view is not None
        return _encoded(waiting.view)


def _encoded(view: EventView) -> bytes:
    return frame(msgspec.json.encode(view.data), view.name)
