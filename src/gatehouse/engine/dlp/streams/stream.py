"""Inspects a stream: holds back each event until all of its texts are released.

Unchanged events are sent with the bytes in which they arrived. Only text to which a finding may still extend is held
back. In the mode `hold`, the whole stream is held back until its end. Held-back text does not delay other texts of the
same stream. All other events keep their order.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from gatehouse.engine.conversation.dialect import Dialect
from gatehouse.engine.conversation.slots import Slot, replace_texts
from gatehouse.engine.conversation.sse import events, frame
from gatehouse.engine.conversation.view import EventView, TextPiece, Unreadable
from gatehouse.engine.dlp.decide import Hit, TierFindings
from gatehouse.engine.dlp.errors import violation
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.streams.channel import Channel
from gatehouse.engine.dlp.streams.event_order import EventOrder
from gatehouse.foundation.errors import Refusal

#: Dialects whose events are numbered, and repeat texts of earlier events. All these events keep their order.
_NUMBERED: Final = frozenset({"openai_responses"})


class _WaitingEvent(msgspec.Struct, gc=False):
    """An event, and the ranges of its pieces in their channels. Only the event's bytes are kept, because a decoded
    event takes many times their memory. A changed event is decoded again."""

    event: bytes
    ranges: list[tuple[Channel, int, int]]
    altered: bool
    #: For each repetition in the event, the channel whose text it repeats. None: the text differs from the text of the
    #: channel, so it is inspected separately, and its range is after the ranges of the pieces.
    echoed_channels: list[Channel | None]
    #: number of ranges that are released already
    released_ranges: int = 0


class _Run(msgspec.Struct, gc=False):
    """Consecutive events, each with one piece of the same text and nothing else. Nearly all events are like this.
    `ends` are the ends of their pieces in the channel; `start` is the start of the first piece."""

    name: str
    channel: Channel
    start: int
    events: list[bytes]
    ends: list[int]


class StreamGuard:
    """Inspects one stream. Once `refusal` is set, no more events are released. While `pending_approval` is set, no
    events are released until `approve` is called."""

    def __init__(self, dialect: Dialect, examiner: Examiner) -> None:
        self._view = dialect.view
        self._growth = dialect.growth
        self._examiner = examiner
        self._hold = examiner.options.stream_mode == "hold"
        #: whether all events keep their order
        self._in_order = self._hold or dialect.name in _NUMBERED
        self._channels: dict[str, Channel] = {}
        #: names of the open channels, by choice or block; the inner dictionaries serve as ordered sets
        self._names: dict[str, dict[str, None]] = {}
        #: channels of growing texts; kept after the end of a text, because events may repeat it
        self._growing: dict[str, Channel] = {}
        #: the pieces of the growing texts, for dialects whose events repeat them
        self._texts: dict[str, list[str]] | None = {} if dialect.name in _NUMBERED else None
        #: the name of the latest growing text, by choice or block
        self._latest: dict[str, str] = {}
        #: names of the texts that have ended
        self._ended_names: set[str] = set()
        self._order: EventOrder[_WaitingEvent | _Run, Channel] = EventOrder()
        #: the last run in the order; None if the next event cannot join it
        self._run: _Run | None = None
        self._whole_pieces = 0
        #: pieces of the texts for the semantic tier, which reads the texts after their release; None if no rule uses
        #: the tier
        self._semantic_pieces: dict[str, list[str]] | None = None
        if not self._hold and examiner.inspection.policy.labels:
            self._semantic_pieces = {}
        self._out: list[bytes] = []
        self._channel_to_approve: Channel | None = None
        self.refusal: Refusal | None = None
        self.pending_approval: Hit | None = None
        #: bytes of the events that have arrived and are not released
        self.pending_bytes = 0
        #: characters of released texts that are kept, because later events repeat them or the semantic tier reads them
        self.kept_characters = 0
        self._is_finished = False
        #: whether an event could not be decoded
        self._is_broken = False

    @property
    def is_halted(self) -> bool:
        """Return whether the stream is refused or needs an approval."""
        return self.refusal is not None or self.pending_approval is not None

    async def push(self, block: bytes) -> bytes:
        """Add whole events, and return the events that are released now. Raises `Unreadable`."""
        # Dictionaries serve as ordered sets: labels are numbered in the order of the texts.
        touched: dict[str, None] = {}
        ended: dict[str, None] = {}
        self.pending_bytes += len(block)
        try:
            self._add_block(block, touched, ended)
        except Unreadable:
            # The remaining events of the block are not sent.
            self._is_broken = True
            raise
        if self._hold:
            return b""
        for name in touched:
            if name not in ended:
                await self._advance(self._channels[name], final=False)
        for name in ended:
            del self._names[_group(name)][name]
            await self._advance(self._channels.pop(name), final=True)
        return self._drain()

    def _add_block(self, block: bytes, touched: dict[str, None], ended: dict[str, None]) -> None:
        """Add the events of a block, and the names of their texts to `touched` and `ended`. Raises `Unreadable`."""
        for event in events(block):
            growth = self._growth(event)
            if growth is None:
                self._run = None
                self._add_event(event, touched, ended)
            else:
                name, text = growth
                self._add_growth(event, name, text)
                touched[name] = None

    async def _advance(self, channel: Channel, *, final: bool) -> None:
        await channel.advance(final=final)
        self._order.wake_waiting(channel)

    def _add_event(self, event: bytes, touched: dict[str, None], ended: dict[str, None]) -> None:
        """Add an event of any form. Adds the names of its texts to `touched`, and the names of texts that it ends to
        `ended`."""
        view = self._view(event)
        if view is None:
            self._order.put((), _WaitingEvent(event, [], False, []))
            return
        ranges = [self._add_piece(piece, touched, ended) for piece in view.pieces]
        if view.ends and not self._hold:
            ended_now = [name for end in view.ends for name in self._names_of_end(end)]
            ended |= dict.fromkeys(ended_now)
            self._ended_names.update(ended_now)
        echoed_channels = [self._echoed_channel(piece) for piece in view.echoes]
        if None in echoed_channels:
            ranges += [
                self._add_piece(TextPiece(piece.channel, piece.slot, whole=True), touched, ended)
                for piece in _not_repeated(view, echoed_channels)
            ]
        self._order.put(self._path(view), _WaitingEvent(event, ranges, view.altered, echoed_channels))

    def _add_piece(
        self, piece: TextPiece, touched: dict[str, None], ended: dict[str, None]
    ) -> tuple[Channel, int, int]:
        """Add a piece to its channel, and return the channel and the piece's range."""
        text = piece.slot.text
        # A text that arrives in one piece never continues another text, even if both have the same name.
        self._whole_pieces += piece.whole
        name = f"{piece.channel}#{self._whole_pieces}" if piece.whole else piece.channel
        channel = self._channel(name, json_text=piece.slot.json_text, is_sealed=piece.slot.is_sealed)
        if not piece.whole:
            self._growing[name] = channel
            if self._texts is not None:
                self._texts.setdefault(name, []).append(text)
                self.kept_characters += len(text)
        start = channel.end
        end = channel.push(text)
        if self._semantic_pieces is not None and not channel.is_sealed:
            self._semantic_pieces.setdefault(name, []).append(text)
            self.kept_characters += len(text)
        (ended if piece.whole else touched)[name] = None
        return channel, start, end

    def _names_of_end(self, end: str) -> list[str]:
        """Return the names of the open texts that are ended by `end`, an end in a view."""
        if end and not end.endswith("."):
            return [end] if end in self._channels else []
        names = self._names.get(_group(end), ()) if end else self._channels
        return [name for name in names if name.startswith(end)]

    def _add_growth(self, event: bytes, name: str, text: str) -> None:
        """Add an event that contains the next piece of one text and nothing else."""
        run = self._run
        if run is None or run.name != name or not run.events:
            channel = self._growing[name] = self._channel(name, json_text=False)
            run = self._run = _Run(name, channel, channel.end, [], [])
            group = _group(name)
            self._latest[group] = name
            self._order.put(() if self._in_order else (group, name), run)
        run.events.append(event)
        run.ends.append(run.channel.push(text))
        if self._texts is not None:
            self._texts.setdefault(name, []).append(text)
            self.kept_characters += len(text)
        if self._semantic_pieces is not None:
            self._semantic_pieces.setdefault(name, []).append(text)
            self.kept_characters += len(text)

    async def finish(self) -> bytes:
        """End the stream, and return the remaining events that may be sent."""
        self._is_finished = True
        if self._hold:
            await self._inspect_whole()
        else:
            for channel in self._channels.values():
                await self._advance(channel, final=True)
            if self._semantic_pieces is not None:
                await self._note_late_labels(["".join(pieces) for pieces in self._semantic_pieces.values()])
        return self._drain()

    async def _note_late_labels(self, texts: list[str]) -> None:
        for labels in await self._examiner.find_labels(texts):
            self._examiner.inspection.note_late(TierFindings(labels=labels), self._examiner.direction)

    async def approve(self) -> bytes:
        """Continue after `pending_approval` was approved, and return the events that are released now."""
        channel = self._channel_to_approve
        assert channel is not None
        self.pending_approval = self._channel_to_approve = None
        channel.approve()
        if channel.skipped_advance is not None:
            # More text arrived, or the text ended, before the approval.
            final, channel.skipped_advance = channel.skipped_advance, None
            await channel.advance(final=final)
        self._order.wake_waiting(channel)
        return self._drain()

    def _channel(self, name: str, *, json_text: bool, is_sealed: bool = False) -> Channel:
        channel = self._channels.get(name)
        if channel is None:
            if name in self._ended_names:
                # The text's earlier part has been released, so both parts cannot be inspected together.
                raise Unreadable
            channel = self._channels[name] = Channel(
                self._examiner, json_text=json_text, is_sealed=is_sealed, scans=not self._hold
            )
            self._names.setdefault(_group(name), {})[name] = None
        return channel

    def _echoed_channel(self, piece: TextPiece) -> Channel | None:
        """Return the channel whose text the piece repeats, or None if it repeats no text that was inspected."""
        channel = self._growing.get(piece.channel)
        if channel is None or self._texts is None or channel.end != len(piece.slot.text):
            return None
        pieces = self._texts[piece.channel]
        if len(pieces) > 1:
            # The pieces are joined once, because several events repeat the text.
            pieces[:] = ["".join(pieces)]
        return channel if pieces[0] == piece.slot.text else None

    def _path(self, view: EventView) -> tuple[str, ...]:
        """Return the path of the event in the order. It determines which events the event waits for, in addition to its
        own texts."""
        if self._in_order:
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

    async def _inspect_whole(self) -> None:
        """Inspect all texts of the completed stream with all tiers."""
        for channel in self._channels.values():
            text = channel.text
            [findings] = await self._examiner.examine([text], json_text=channel.json_text, is_sealed=channel.is_sealed)
            if not await self._examiner.run_steps(len(text), channel.process_whole(text, findings), fallback=False):
                channel.release_unchanged(text)
            self._order.wake_waiting(channel)

    def _drain(self) -> bytes:
        self._order.drain(self._release, lambda: self.is_halted)
        if self._is_finished and self.pending_bytes and not (self.is_halted or self._is_broken):
            # Without this error, the client would receive an incomplete answer that looks complete.
            raise RuntimeError(f"{self.pending_bytes} bytes of a stream's events are held back after its end")
        out, self._out = b"".join(self._out), []
        return out

    def _release(self, waiting: _WaitingEvent | _Run) -> Channel | None:
        """Release an event if its texts are released, or the released events of a run. Returns the channel that the
        remaining events wait for, or None if nothing remains."""
        if isinstance(waiting, _Run):
            return self._release_run(waiting)
        ranges = waiting.ranges
        while waiting.released_ranges < len(ranges):
            channel, start, end = ranges[waiting.released_ranges]
            if channel.released < end:
                self._halt(waiting, channel, start)
                return channel
            waiting.released_ranges += 1
        self.pending_bytes -= len(waiting.event)
        self._out.append(self._released_bytes(waiting))
        return None

    def _release_run(self, run: _Run) -> Channel | None:
        channel = run.channel
        count = bisect_right(run.ends, channel.released)
        if count:
            released_events, end = run.events[:count], run.ends[count - 1]
            self.pending_bytes -= sum(map(len, released_events))
            if channel.is_changed(run.start, end):
                for event, (piece_start, piece_end) in zip(
                    released_events, pairwise([run.start, *run.ends[:count]]), strict=True
                ):
                    self._out.append(
                        self._released_bytes(_WaitingEvent(event, [(channel, piece_start, piece_end)], False, []))
                    )
            else:
                self._out += released_events
                channel.drop(end)
            run.start = end
            del run.events[:count], run.ends[:count]
        if not run.events:
            return None
        if channel.blocking_hit is not None or channel.pending_approval is not None:
            self._halt(_WaitingEvent(run.events[0], [(channel, run.start, run.ends[0])], False, []), channel, run.start)
        return channel

    def _halt(self, waiting: _WaitingEvent, channel: Channel, start: int) -> None:
        """Refuse the stream or request an approval if `channel` has a hit that requires it. The event has a piece of
        the channel that begins at `start`."""
        if channel.blocking_hit is not None:
            if channel.released > start:
                self._out.append(self._rewrite(waiting))
            self._examiner.inspection.note_action("BLOCK")
            self.refusal = violation(channel.blocking_hit, "BLOCK", self._examiner.options.block_status)
            self._order = EventOrder()
        elif channel.pending_approval is not None:
            self.pending_approval, self._channel_to_approve = channel.pending_approval, channel

    def _released_bytes(self, waiting: _WaitingEvent) -> bytes:
        if waiting.altered:
            return self._rewrite(waiting)
        for channel, start, end in waiting.ranges:
            if channel.is_changed(start, end):
                return self._rewrite(waiting)
        for echoed in waiting.echoed_channels:
            if echoed is not None and echoed.applied:
                return self._rewrite(waiting)
        for channel, _, end in waiting.ranges:
            channel.drop(end)
        return waiting.event

    def _rewrite(self, waiting: _WaitingEvent) -> bytes:
        """Return the event with only the released part of its texts."""
        view = self._view(waiting.event)
        assert view is not None
        texts: list[tuple[Slot, str]] = []
        pieces = [*view.pieces, *_not_repeated(view, waiting.echoed_channels)]
        for piece, (channel, start, end) in zip(pieces, waiting.ranges, strict=True):
            allowed = max(start, min(end, channel.released))
            changed = allowed < end or channel.is_changed(start, allowed)
            text = channel.take(start, allowed)
            if changed:
                texts.append((piece.slot, "{}" if piece.slot.is_object and allowed < end else text))
        echoes = zip(view.echoes, waiting.echoed_channels, strict=True)
        texts += ((piece.slot, channel.repeat(piece.slot.text)) for piece, channel in echoes if channel is not None)
        replace_texts(texts)
        # The name of an event is its type, which a replacement may have changed.
        return frame(msgspec.json.encode(view.data), view.name and str(view.data["type"]))


def _not_repeated(view: EventView, echoed_channels: Sequence[Channel | None]) -> list[TextPiece]:
    """Return the texts of a view's repetitions that differ from the texts that they repeat."""
    return [piece for piece, channel in zip(view.echoes, echoed_channels, strict=True) if channel is None]


def _group(name: str) -> str:
    """Return the choice or block that a text belongs to."""
    return name.partition(".")[0]
