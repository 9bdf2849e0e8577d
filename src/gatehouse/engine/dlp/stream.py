"""A stream's events, each held back until all of its texts may go on.

Events that nothing is changed in go on as the bytes they came in. Held back is only what a finding may still reach;
with `hold`, everything until the end. What is held back of one text does not hold back another that goes on beside it;
all other events go on in the order in which they came.
"""

from bisect import bisect_right
from itertools import pairwise

import msgspec

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.slots import Slot, replace_texts
from gatehouse.engine.conversation.sse import events, frame
from gatehouse.engine.conversation.view import EventView, Piece, Unreadable
from gatehouse.engine.dlp.channel import Channel
from gatehouse.engine.dlp.decide import Hit, TierFindings
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.order import EventOrder
from gatehouse.foundation.errors import Refusal


class _Waiting(msgspec.Struct, gc=False):
    """An event, and where in their channels its pieces lie. What is changed is decoded again: a decoded event takes
    many times the memory."""

    event: bytes
    places: list[tuple[Channel, int, int]]
    altered: bool
    #: the channels that its echoes say again
    echoed: list[Channel]
    #: how many of its places may go on
    passed: int = 0


class _Run(msgspec.Struct, gc=False):
    """Events that came one after the other, each with a piece of one text and nothing else: as nearly all do. `ends`
    are where their pieces end in the channel; `start` is where the first begins."""

    name: str
    channel: Channel
    start: int
    events: list[bytes]
    ends: list[int]


class StreamGuard:
    """One stream's. After a `refusal` nothing more comes; while a hit `asks`, nothing comes until `go_on`."""

    def __init__(self, dialect: Dialect, examiner: Examiner) -> None:
        self._view = dialect.view
        self._growth = dialect.growth
        self._examiner = examiner
        self._hold = examiner.options.stream_mode == "hold"
        self._channels: dict[str, Channel] = {}
        #: their names by choice or block; dictionaries as sets in order
        self._names: dict[str, dict[str, None]] = {}
        #: those of texts that grow, also after their end: they may be said again
        self._spoken: dict[str, Channel] = {}
        #: by choice or block, the growing text that came last
        self._latest: dict[str, str] = {}
        #: texts that have come to their end
        self._over: set[str] = set()
        self._order: EventOrder[_Waiting | _Run, Channel] = EventOrder()
        #: the last that was put in order, where another event may join it
        self._run: _Run | None = None
        self._whole_pieces = 0
        #: the texts for the semantic tier, which reads them when they have gone on; none where no rule asks for it
        self._gone: dict[str, list[str]] | None = None
        if not self._hold and examiner.inspection.policy.labels:
            self._gone = {}
        self._out: list[bytes] = []
        self._asking: Channel | None = None
        self.refusal: Refusal | None = None
        self.pending_approval: Hit | None = None
        #: bytes of events that came and have not gone on
        self.held_bytes = 0

    @property
    def is_halted(self) -> bool:
        """Whether it came to its end, or to a question."""
        return self.refusal is not None or self.pending_approval is not None

    async def push(self, block: bytes) -> bytes:
        """Whole events in, what of them and those before may go on out. Raises `Unreadable`."""
        # Dictionaries as sets in order: labels are numbered as texts came.
        touched: dict[str, None] = {}
        ended: dict[str, None] = {}
        self.held_bytes += len(block)
        for event in events(block):
            growth = self._growth(event)
            if growth is None:
                self._run = None
                self._come(event, touched, ended)
            else:
                name, text = growth
                self._grow(event, name, text)
                touched[name] = None
        if self._hold:
            return b""
        for name in touched:
            if name not in ended:
                await self._advance(self._channels[name], final=False)
        for name in ended:
            del self._names[_group(name)][name]
            await self._advance(self._channels.pop(name), final=True)
        return self._drain()

    async def _advance(self, channel: Channel, *, final: bool) -> None:
        await channel.advance(final=final)
        self._order.wake_waiting(channel)

    def _come(self, event: bytes, touched: dict[str, None], ended: dict[str, None]) -> None:
        """An event that may hold anything. Notes whose texts it adds to, and which have come to their end."""
        view = self._view(event)
        if view is None:
            self._order.put((), _Waiting(event, [], False, []))
            return
        places = []
        for piece in view.pieces:
            text = piece.slot.text
            # A text that comes in one piece is nobody's continuation, whatever it is called.
            self._whole_pieces += piece.whole
            name = f"{piece.channel}#{self._whole_pieces}" if piece.whole else piece.channel
            channel = self._channel(name, json_text=piece.slot.json_text, is_sealed=piece.slot.is_sealed)
            if not piece.whole:
                self._spoken[name] = channel
            start = channel.end
            places.append((channel, start, channel.push(text)))
            if self._gone is not None and not channel.is_sealed:
                self._gone.setdefault(name, []).append(text)
            (ended if piece.whole else touched)[name] = None
        if view.ends and not self._hold:
            over = [name for end in view.ends for name in self._ending(end)]
            ended |= dict.fromkeys(over)
            self._over.update(over)
        echoed = [self._echoed(piece) for piece in view.echoes] if view.echoes else []
        self._order.put(self._path(view), _Waiting(event, places, view.altered, echoed))

    def _ending(self, end: str) -> list[str]:
        """The open texts that an end is one of, as a view tells it."""
        if end and not end.endswith("."):
            return [end] if end in self._channels else []
        names = self._names.get(_group(end), ()) if end else self._channels
        return [name for name in names if name.startswith(end)]

    def _grow(self, event: bytes, name: str, text: str) -> None:
        """The next piece of a text, and nothing else."""
        run = self._run
        if run is None or run.name != name or not run.events:
            channel = self._spoken[name] = self._channel(name, json_text=False)
            run = self._run = _Run(name, channel, channel.end, [], [])
            group = _group(name)
            self._latest[group] = name
            self._order.put(() if self._hold else (group, name), run)
        run.events.append(event)
        run.ends.append(run.channel.push(text))
        if self._gone is not None:
            self._gone.setdefault(name, []).append(text)

    async def finish(self) -> bytes:
        """The stream is over: everything that is left."""
        if self._hold:
            await self._whole()
        else:
            for channel in self._channels.values():
                await self._advance(channel, final=True)
            if self._gone is not None:
                await self._too_late(["".join(pieces) for pieces in self._gone.values()])
        return self._drain()

    async def _too_late(self, texts: list[str]) -> None:
        for labels in await self._examiner.find_labels(texts):
            self._examiner.inspection.note_late(TierFindings(labels=labels), self._examiner.direction)

    def approve(self) -> bytes:
        """A person approved."""
        assert self._asking is not None
        self._asking.approve()
        self._order.wake_waiting(self._asking)
        self.pending_approval = self._asking = None
        return self._drain()

    def _channel(self, name: str, *, json_text: bool, is_sealed: bool = False) -> Channel:
        channel = self._channels.get(name)
        if channel is None:
            if name in self._over:
                # What was before has gone on already: nobody can say what the two are together.
                raise Unreadable
            channel = self._channels[name] = Channel(
                self._examiner, json_text=json_text, is_sealed=is_sealed, scans=not self._hold
            )
            self._names.setdefault(_group(name), {})[name] = None
        return channel

    def _echoed(self, piece: Piece) -> Channel:
        channel = self._spoken.get(piece.channel)
        if channel is None:
            if piece.slot.text:
                # It says again what nobody has looked at.
                raise Unreadable
            channel = Channel(self._examiner, scans=False)
        if channel.end != len(piece.slot.text):
            raise Unreadable
        return channel

    def _path(self, view: EventView) -> tuple[str, ...]:
        """What an event waits for, besides its own texts."""
        if self._hold:
            return ()
        growing = {piece.channel for piece in view.pieces if not piece.whole}
        groups = set(map(_group, growing))
        self._latest.update((_group(name), name) for name in growing)
        if view.follows is not None:
            groups.add(view.follows)
        if len(groups) > 1 or "" in groups:
            return ()
        if view.follows is None and len(growing) <= 1:
            if not growing and view.group in self._latest:
                return (view.group, self._latest[view.group])
            return (*groups, *growing) or ("",)
        return tuple(groups)

    async def _whole(self) -> None:
        """Each text of the whole stream, through all tiers."""
        for channel in self._channels.values():
            text = channel.text
            [found] = await self._examiner.examine([text], json_text=channel.json_text, is_sealed=channel.is_sealed)
            if not await self._examiner.run_steps(len(text), channel.process_whole(text, found), fallback=False):
                channel.release_unchanged(text)
            self._order.wake_waiting(channel)

    def _drain(self) -> bytes:
        self._order.drain(self._go, lambda: self.is_halted)
        out, self._out = b"".join(self._out), []
        return out

    def _go(self, waiting: _Waiting | _Run) -> Channel | None:
        """Lets an event go on if it may; of a run, those that may. The text that the rest waits for; None where nothing
        is left."""
        if isinstance(waiting, _Run):
            return self._go_on_with(waiting)
        places = waiting.places
        while waiting.passed < len(places):
            channel, start, end = places[waiting.passed]
            if channel.released < end:
                self._stay(waiting, channel, start)
                return channel
            waiting.passed += 1
        self.held_bytes -= len(waiting.event)
        self._out.append(self._released(waiting))
        return None

    def _go_on_with(self, run: _Run) -> Channel | None:
        channel = run.channel
        count = bisect_right(run.ends, channel.released)
        if count:
            gone, end = run.events[:count], run.ends[count - 1]
            self.held_bytes -= sum(map(len, gone))
            if channel.is_changed(run.start, end):
                for event, (start, stop) in zip(gone, pairwise([run.start, *run.ends[:count]]), strict=True):
                    self._out.append(self._released(_Waiting(event, [(channel, start, stop)], False, [])))
            else:
                self._out += gone
                channel.drop(end)
            run.start = end
            del run.events[:count], run.ends[:count]
        if not run.events:
            return None
        if channel.blocking_hit is not None or channel.pending_approval is not None:
            self._stay(_Waiting(run.events[0], [(channel, run.start, run.ends[0])], False, []), channel, run.start)
        return channel

    def _stay(self, waiting: _Waiting, channel: Channel, start: int) -> None:
        """An event that may not go on for what its piece of `channel` from `start` on holds."""
        if channel.blocking_hit is not None:
            if channel.released > start:
                self._out.append(self._rewritten(waiting))
            self._examiner.inspection.note_action("BLOCK")
            self.refusal = violation(channel.blocking_hit, "BLOCK", self._examiner.options.block_status)
            self._order = EventOrder()
        elif channel.pending_approval is not None:
            self.pending_approval, self._asking = channel.pending_approval, channel

    def _released(self, waiting: _Waiting) -> bytes:
        if waiting.altered:
            return self._rewritten(waiting)
        for channel, start, end in waiting.places:
            if channel.is_changed(start, end):
                return self._rewritten(waiting)
        for channel in waiting.echoed:
            if channel.applied:
                return self._rewritten(waiting)
        for channel, _, end in waiting.places:
            channel.drop(end)
        return waiting.event

    def _rewritten(self, waiting: _Waiting) -> bytes:
        """The event with as much of its texts as may go on."""
        view = self._view(waiting.event)
        assert view is not None
        texts: list[tuple[Slot, str]] = []
        for piece, (channel, start, end) in zip(view.pieces, waiting.places, strict=True):
            allowed = max(start, min(end, channel.released))
            changed = allowed < end or channel.is_changed(start, allowed)
            text = channel.take(start, allowed)
            if changed:
                texts.append((piece.slot, "{}" if piece.slot.is_object and allowed < end else text))
        echoes = zip(view.echoes, waiting.echoed, strict=True)
        texts += ((piece.slot, channel.repeat(piece.slot.text)) for piece, channel in echoes)
        replace_texts(texts)
        # A name is the event's type, which may have been replaced.
        return frame(msgspec.json.encode(view.data), view.name and str(view.data["type"]))


def _group(name: str) -> str:
    """The choice or block that a text belongs to."""
    return name.partition(".")[0]
