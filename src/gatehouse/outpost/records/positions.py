"""Moves records from the journal to the audit log after they have been uploaded, or after an operator has confirmed
them.

The upload position of each writer's journal is stored in `outpost/uploaded.json`, which only this module writes.
Sequence numbers count from 1 in each writer's journal. A damaged part is treated as one entry, and the end of a dead
writer is treated as one entry, so that all readers compute the same numbers.
"""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine.records import upload_notices
from gatehouse.engine.records.upload_notices import Ended, Lost
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import Batch, JournalReader, Position, files
from gatehouse.outpost import durable_files
from gatehouse.outpost.records.log import AuditLog, Cursor

log = structlog.get_logger(__name__)

_FILE: Final = "uploaded.json"
#: Limits of one upload, because `POST /v1/outposts/records` accepts no more. They are also the limits of one read.
MAX_UPLOAD_RECORDS: Final = 2_000
MAX_UPLOAD_BYTES: Final = 1024**2


class UploadPosition(msgspec.Struct, frozen=True):
    """The upload position in the journal of one writer. All entries before `offset` of `segment` have been uploaded.

    In uploads, the id of the journal is the id of its writer. If the platform lacks records that are no longer stored,
    the journal continues under a new id, `journal_id`, and its sequence numbers in uploads are smaller by `skipped`.
    `lost` is the number of missing records, or None after it has been reported to the platform.
    """

    segment: int = 1
    offset: int = 0
    #: sequence number of the next entry
    sequence: int = 1
    journal_id: UUID | None = None
    skipped: int = 0
    lost: int | None = None
    #: whether the whole journal has been uploaded, and its files are kept because the SIEM has not received all events
    over: bool = False

    @property
    def number(self) -> int:
        """Returns the sequence number of the next entry in uploads."""
        return self.sequence - self.skipped


class RecordBatch(NamedTuple):
    """Consecutive entries of one writer's journal. They include notices of damage and of the journal's end
    (`engine.records.upload_notices`). `place` is the position before the entries, and `then` is the position after
    them."""

    writer_id: UUID
    place: UploadPosition
    then: UploadPosition
    entries: list[bytes]
    #: whether the writer is dead and these are its last entries
    finished: bool

    @property
    def journal_id(self) -> UUID:
        return self.place.journal_id or self.writer_id

    @property
    def begin(self) -> Cursor:
        return Cursor(self.writer_id, self.place.sequence)


class UnknownPlace(Exception):
    """The position is not in the journal."""


class OutpostRecords:
    """The outpost's journal and audit log. All methods block on files, so do not call them in the thread of the event
    loop."""

    def __init__(self, folder: Path, audit: AuditLog) -> None:
        self.journal = folder / "journal"
        self.audit = audit
        #: A reader of both the journal and the audit log must hold this lock, so that no record is moved between the
        #: two reads.
        self.lock = threading.RLock()
        self._path = folder / _FILE
        self._reader = JournalReader(self.journal)
        self._places = self._load()
        self._reader.pass_over(_over(self._places))

    def follower(self) -> JournalReader:
        """Returns a second reader of the journal, for another receiver of the records. A record remains in the journal
        until both readers have released it."""
        return self._reader.follower()

    def claim(self) -> bool:
        """Tries to become the only process that moves the records of this home. Returns False while an earlier process
        is still running."""
        return self._reader.claim()

    def close(self) -> None:
        self._reader.close()

    def places(self) -> dict[UUID, UploadPosition]:
        with self.lock:
            return dict(self._places)

    def take(self, max_records: int = MAX_UPLOAD_RECORDS) -> RecordBatch | None:
        """Returns the oldest entries that are not uploaded, or None. Raises `OSError`."""
        with self.lock:
            batch = read_batch(self._reader, self._places, max_records)
            if batch is not None and batch.place.journal_id and batch.writer_id not in self._places:
                self._store(batch.writer_id, batch.place)  # stores the new id of the journal
            return batch

    def mark_uploaded(self, batch: RecordBatch) -> None:
        """Moves uploaded or confirmed entries from the journal into the audit log. Raises `OSError`: the call can then
        be repeated."""
        with self.lock:
            if self._places.get(batch.writer_id, batch.place) != batch.place:
                return  # an operator has confirmed the entries meanwhile
            self.audit.append(batch.begin, batch.entries)
            self._store(batch.writer_id, batch.then)
            moved = {batch.writer_id: Position(batch.then.segment, batch.then.offset)}
            finished = [batch.writer_id] if batch.finished else []
            for released in self._reader.release(Batch(positions=moved, finished=finished)):
                self._places.pop(released, None)
            if batch.finished and batch.writer_id in self._places:
                self._store(batch.writer_id, msgspec.structs.replace(batch.then, over=True))

    def loss_reported(self, batch: RecordBatch) -> None:
        """Stores that the number of missing records has been reported to the platform."""
        self._store(batch.writer_id, msgspec.structs.replace(batch.place, lost=None))

    def continue_as_new_journal(self, batch: RecordBatch, missing: int) -> None:
        """Continues the journal under a new id, because the platform lacks records that are no longer stored here. In
        the new journal, entry 1 is a notice of the missing records."""
        place = batch.place
        self._store(
            batch.writer_id,
            msgspec.structs.replace(place, journal_id=new_id(), skipped=place.sequence - 2, lost=missing),
        )

    def confirm(self, through: Cursor) -> int:
        """Moves all entries up to `through`, which an operator has exported, into the audit log. Returns the number of
        moved entries. Raises `UnknownPlace`, `OSError`."""
        self._seek(through)
        released = 0
        while True:
            with self.lock:
                batch = self.take()
                if batch is None or batch.begin > through:
                    return released
                if batch.writer_id == through.journal_id:
                    batch = self._cut(batch, through.sequence - batch.place.sequence + 1)
                self.mark_uploaded(batch)
                released += len(batch.entries)

    def _cut(self, batch: RecordBatch, count: int) -> RecordBatch:
        """Returns a batch with the first `count` entries. Reads them again to determine the position after them."""
        if count >= len(batch.entries):
            return batch
        shorter = read_batch(self._reader, self._places, count)
        assert shorter is not None
        return shorter

    def _seek(self, through: Cursor) -> None:
        """Checks that `through` has been uploaded or is in the journal. Raises `UnknownPlace`."""
        places, finished = self.places(), set[UUID]()
        position = places.get(through.journal_id)
        if position is not None and through.sequence < position.sequence:
            return
        reader = JournalReader(self.journal)
        while (batch := read_batch(reader, places, MAX_UPLOAD_RECORDS, skipped_writers=finished)) is not None:
            places[batch.writer_id] = batch.then
            if batch.finished:
                finished.add(batch.writer_id)
            if batch.writer_id == through.journal_id and through.sequence < batch.then.sequence:
                return
        raise UnknownPlace

    def _store(self, writer_id: UUID, place: UploadPosition) -> None:
        with self.lock:
            self._places[writer_id] = place
            durable_files.write(self._path, msgspec.json.encode(self._places))

    def _load(self) -> dict[UUID, UploadPosition]:
        document = durable_files.read(self._path)
        try:
            positions = msgspec.json.decode(document or b"{}", type=dict[UUID, UploadPosition])
        except msgspec.DecodeError as error:
            log.warning("outpost.uploaded_unreadable", reason=str(error))
            return {}
        writers = set(files.writer_ids(self.journal))
        return {writer_id: place for writer_id, place in positions.items() if writer_id in writers}


def read_batch(
    reader: JournalReader,
    places: Mapping[UUID, UploadPosition],
    max_records: int,
    *,
    skipped_writers: Iterable[UUID] = (),
) -> RecordBatch | None:
    """Returns at most `max_records` entries after the positions `places`, all of the oldest writer that has some, or
    None. Raises `OSError`."""
    reader.resume({writer_id: Position(place.segment, place.offset) for writer_id, place in places.items()})
    batch = reader.oldest(max_records, MAX_UPLOAD_BYTES, {*skipped_writers, *_over(places)})
    if not batch:
        return None
    (writer_id,) = batch.positions or batch.finished
    ended = writer_id in batch.finished
    located = [(entry.segment, entry.offset_end, entry.payload) for entry in batch.entries]
    # A torn record at the end of a journal is not damage: the process was killed before it acknowledged the record.
    if damaged_places := [damage for damage in batch.damage if not damage.torn]:
        # The time of a damaged record is unknown. The time of the last write is its latest possible time.
        written_at = reader.last_written(writer_id)
        located += [
            (
                damage.segment,
                damage.offset + damage.length,
                upload_notices.encode(Lost("damaged", bytes=damage.length, timestamp=written_at)),
            )
            for damage in damaged_places
        ]
        located.sort()
    place = places.get(writer_id) or _unknown(located[0][0] if located else 1)
    segment, offset = batch.positions.get(writer_id, Position(place.segment, place.offset))
    if len(located) > max_records:
        located, ended = located[:max_records], False
        segment, offset = located[-1][:2]
    entries = [payload for _, _, payload in located]
    if ended and (entries or place.sequence > 1):
        if len(entries) < max_records:
            entries.append(upload_notices.encode(Ended(reader.last_written(writer_id))))
        else:
            ended = False
    then = msgspec.structs.replace(place, segment=segment, offset=offset, sequence=place.sequence + len(entries))
    return RecordBatch(writer_id, place, then, entries, ended)


def _unknown(segment: int) -> UploadPosition:
    """Returns the position of a writer without a stored position.

    A journal without its first segment has been uploaded up to an unknown number. It continues under a new id, so that
    the platform accepts its entries. The platform then rejects the records that it already has.
    """
    return UploadPosition() if segment == 1 else UploadPosition(journal_id=new_id())


def _over(places: Mapping[UUID, UploadPosition]) -> list[UUID]:
    return [writer_id for writer_id, place in places.items() if place.over]
