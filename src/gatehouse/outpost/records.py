"""Where each record of this outpost is: in the journal until it is handed in (or an operator has it), then in the audit
log. The one owner of what was handed in, `outpost/uploaded.json`.

An entry's number counts from 1 in its writer's journal, damaged places counted as one each, and the end of a dead
writer as the last. So it is the same whoever reads, and however often.
"""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine import notices
from gatehouse.engine.notices import Ended, Lost
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import Batch, JournalReader, Position, files
from gatehouse.outpost import kept
from gatehouse.outpost.audit_log import AuditLog, Cursor

log = structlog.get_logger(__name__)

_FILE: Final = "uploaded.json"
#: Of one upload (`POST /v1/outposts/records` takes no more) and so of everything that is read at a time.
MOST_RECORDS: Final = 2_000
MOST_BYTES: Final = 1024**2


class Place(msgspec.Struct, frozen=True):
    """How far one writer's entries are handed in: everything before `offset` of `segment` is.

    The platform knows the journal by its writer's id, unless that could not be gone on with: then by `journal_id`, and
    by numbers that are `skipped` less than here. `lost` is what it is to be told first, then.
    """

    segment: int = 1
    offset: int = 0
    #: of the next entry
    sequence: int = 1
    journal_id: UUID | None = None
    skipped: int = 0
    lost: int | None = None
    #: handed in to its end, and kept for the SIEM
    over: bool = False

    @property
    def number(self) -> int:
        """The next entry's, as the platform counts."""
        return self.sequence - self.skipped


class Taken(NamedTuple):
    """Entries of one writer, as they are in its journal, with notices between them (`engine.notices`)."""

    writer_id: UUID
    place: Place
    then: Place
    entries: list[bytes]
    #: the writer is dead, and these are its last
    finished: bool

    @property
    def journal_id(self) -> UUID:
        return self.place.journal_id or self.writer_id

    @property
    def begin(self) -> Cursor:
        return Cursor(self.writer_id, self.place.sequence)


class NotThere(Exception):
    """The place that was named is not in the journal."""


class Records:
    """Every call reads or writes files: not for the loop. From any thread."""

    def __init__(self, folder: Path, audit: AuditLog) -> None:
        self.journal = folder / "journal"
        self.audit = audit
        #: held by whoever reads from journal and audit log what must not move from one to the other meanwhile
        self.lock = threading.RLock()
        self._path = folder / _FILE
        self._reader = JournalReader(self.journal)
        self._places = self._kept()
        self._reader.pass_over(_over(self._places))

    def follower(self) -> JournalReader:
        """For another receiver of all records: what it has not confirmed stays in the journal."""
        return self._reader.follower()

    def claim(self) -> bool:
        """Whether this is the one process that moves this home's records. Another one may be ending still."""
        return self._reader.claim()

    def close(self) -> None:
        self._reader.close()

    def places(self) -> dict[UUID, Place]:
        with self.lock:
            return dict(self._places)

    def take(self, most: int = MOST_RECORDS) -> Taken | None:
        """The oldest entries that are not handed in; None: all are. Raises `OSError`."""
        with self.lock:
            found = taken(self._reader, self._places, most)
            if found is not None and found.place.journal_id and found.writer_id not in self._places:
                self._put(found.writer_id, found.place)  # else it would be another one the next time
            return found

    def settle(self, done: Taken) -> None:
        """They are the platform's, or an operator's: from the journal into the audit log. Raises `OSError`; what was
        done is then found done."""
        with self.lock:
            if self._places.get(done.writer_id, done.place) != done.place:
                return  # an operator was faster
            self.audit.append(done.begin, done.entries)
            self._put(done.writer_id, done.then)
            moved = {done.writer_id: Position(done.then.segment, done.then.offset)}
            finished = [done.writer_id] if done.finished else []
            for gone in self._reader.release(Batch(positions=moved, finished=finished)):
                self._places.pop(gone, None)
            if done.finished and done.writer_id in self._places:
                self._put(done.writer_id, msgspec.structs.replace(done.then, over=True))

    def told(self, done: Taken) -> None:
        """The platform has heard what this journal has lost."""
        self._put(done.writer_id, msgspec.structs.replace(done.place, lost=None))

    def begin_anew(self, done: Taken, missing: int) -> None:
        """Under another id, from number 1 on, which says that so many are missing: the platform cannot go on with the
        old one, and what it asks for is not kept any more."""
        place = done.place
        self._put(
            done.writer_id,
            msgspec.structs.replace(place, journal_id=new_id(), skipped=place.sequence - 2, lost=missing),
        )

    def confirm(self, through: Cursor) -> int:
        """An operator has everything up to there; says how many entries that are new to this outpost. Raises
        `NotThere`, `OSError`."""
        self._seek(through)
        released = 0
        while True:
            with self.lock:
                found = self.take()
                if found is None or found.begin > through:
                    return released
                if found.writer_id == through.journal_id:
                    found = self._cut(found, through.sequence - found.place.sequence + 1)
                self.settle(found)
                released += len(found.entries)

    def _cut(self, found: Taken, count: int) -> Taken:
        """Read again, up to so many: where they end is known to whoever reads only."""
        if count >= len(found.entries):
            return found
        again = taken(self._reader, self._places, count)
        assert again is not None
        return again

    def _seek(self, through: Cursor) -> None:
        places, passed = self.places(), set[UUID]()
        held = places.get(through.journal_id)
        if held is not None and through.sequence < held.sequence:
            return
        reader = JournalReader(self.journal)
        while (found := taken(reader, places, MOST_RECORDS, passing=passed)) is not None:
            places[found.writer_id] = found.then
            if found.finished:
                passed.add(found.writer_id)
            if found.writer_id == through.journal_id and through.sequence < found.then.sequence:
                return
        raise NotThere

    def _put(self, writer_id: UUID, place: Place) -> None:
        with self.lock:
            self._places[writer_id] = place
            kept.write(self._path, msgspec.json.encode(self._places))

    def _kept(self) -> dict[UUID, Place]:
        document = kept.read(self._path)
        try:
            found = msgspec.json.decode(document or b"{}", type=dict[UUID, Place])
        except msgspec.DecodeError as error:
            log.warning("outpost.uploaded_unreadable", reason=str(error))
            return {}
        there = set(files.writer_ids(self.journal))
        return {writer_id: place for writer_id, place in found.items() if writer_id in there}


def taken(
    reader: JournalReader, places: Mapping[UUID, Place], most: int, *, passing: Iterable[UUID] = ()
) -> Taken | None:
    """The oldest writer's entries after `places`, at most so many. Raises `OSError`."""
    reader.resume({writer_id: Position(place.segment, place.offset) for writer_id, place in places.items()})
    batch = reader.oldest(most, MOST_BYTES, {*passing, *_over(places)})
    if not batch:
        return None
    (writer_id,) = batch.positions or batch.finished
    ended = writer_id in batch.finished
    found = [(each.segment, each.offset_end, each.payload) for each in batch.entries]
    # What a kill has cut off was never acknowledged.
    if damage := [each for each in batch.damage if not each.torn]:
        # When the damaged record was written is not known; it was not later than this.
        moment = reader.last_written(writer_id)
        found += [
            (
                each.segment,
                each.offset + each.length,
                notices.encode(Lost("damaged", bytes=each.length, timestamp=moment)),
            )
            for each in damage
        ]
        found.sort()
    place = places.get(writer_id) or _unknown(found[0][0] if found else 1)
    segment, offset = batch.positions.get(writer_id, Position(place.segment, place.offset))
    if len(found) > most:
        found, ended = found[:most], False
        segment, offset = found[-1][:2]
    entries = [payload for _, _, payload in found]
    if ended and (entries or place.sequence > 1):
        if len(entries) < most:
            entries.append(notices.encode(Ended(reader.last_written(writer_id))))
        else:
            ended = False
    then = msgspec.structs.replace(place, segment=segment, offset=offset, sequence=place.sequence + len(entries))
    return Taken(writer_id, place, then, entries, ended)


def _unknown(segment: int) -> Place:
    """A writer's whose beginning is gone was handed in for a part, and up to which number cannot be known any more:
    under another id the platform takes the rest, and names what it had already."""
    return Place() if segment == 1 else Place(journal_id=new_id())


def _over(places: Mapping[UUID, Place]) -> list[UUID]:
    return [writer_id for writer_id, place in places.items() if place.over]
