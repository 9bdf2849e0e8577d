"""The audit log at the customer's site. Uploaded records are appended to its files `outpost/audit/00000001.jsonl` and
so on. A line is one JSON object.

A line contains every field of the journal's entry under its name (`engine.records.outcome`,
`engine.records.upload_notices`). So the entry can be restored from the line, as `gatehouse outpost hand-in` does. Times
are ISO 8601. A line begins with the position of the entry in a fixed layout, so that a search for a position need not
decode the whole line. docs/outpost-records.md describes the lines.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import structlog

from gatehouse.engine.records.outcome import (
    DlpEvent,
    Failed,
    Opened,
    Outcome,
    RuleEvent,
    Scanned,
    ToolCalled,
)
from gatehouse.engine.records.upload_notices import Ended, Lost, Operated
from gatehouse.foundation.clock import iso

log = structlog.get_logger(__name__)

_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "outcome": Outcome.__struct_fields__,
    "opened": Opened.__struct_fields__,
    "scanned": Scanned.__struct_fields__,
    "tool_called": ToolCalled.__struct_fields__,
    "lost": Lost.__struct_fields__,
    "ended": Ended.__struct_fields__,
    "operated": Operated.__struct_fields__,
}
_NESTED: Final[dict[str, tuple[str, ...]]] = {
    "dlp_events": DlpEvent.__struct_fields__,
    "rule_events": RuleEvent.__struct_fields__,
    "attempts": Failed.__struct_fields__,
}
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_ID_BEGINS: Final = len('{"journal_id":"')
_ID_ENDS: Final = _ID_BEGINS + 36
_SEQUENCE_BEGINS: Final = _ID_ENDS + len('","sequence":')
_TIMESTAMP: Final = b',"timestamp":'
#: Maximum bytes of a line up to and including the name `timestamp`.
_HEAD_MAX_BYTES: Final = _SEQUENCE_BEGINS + 20 + len(',"handed_in":false') + len(_TIMESTAMP)
_BOOLEANS: Final = (b"false", b"true")
#: Number of bytes that are read at a time.
_READ_BYTES: Final = 256 * 1024


class Cursor(NamedTuple):
    """The position of an entry: the journal of its writer, and its sequence number in this journal, which counts from
    1. The order of cursors is the order of writing if each process has started after the end of the previous one."""

    journal_id: UUID
    sequence: int


class Spot(NamedTuple):
    """A read position in the log's files: everything before it has been read."""

    file: int = 0
    offset: int = 0


class NotALine(ValueError):
    """The text is not a line of an audit log."""


def line(at: Cursor, entry: bytes, *, handed_in: bool) -> bytes:
    """Returns the line of an entry, with named fields and a line break."""
    kind, *values = _decode(entry)
    fields: dict[str, Any] = {"type": kind, **dict(zip(_FIELDS[kind], values, strict=False))}
    for name, nested_names in _NESTED.items():
        if fields.get(name):
            fields[name] = [dict(zip(nested_names, nested, strict=False)) for nested in fields[name]]
    if fields.get("budgets"):
        fields["budgets"] = [{"id": budget_id, "period_start": iso(start)} for budget_id, start in fields["budgets"]]
    timestamp = fields.pop("timestamp", None)
    time = b"null" if timestamp is None else _iso(timestamp)
    text = b'{"journal_id":"%b","sequence":%d,"handed_in":%b,"timestamp":%b,%b\n'
    return text % (_id(at.journal_id), at.sequence, _BOOLEANS[handed_in], time, _encode(fields)[1:])


def in_current_form(text: bytes) -> bytes:
    """Returns the line in the format of this version. Earlier versions have written Unix times, and some lines without
    a time."""
    return text if _TIMESTAMP in text[:_HEAD_MAX_BYTES] else line(place(text), entry(text), handed_in=True)


def _iso(timestamp: float) -> bytes:
    # Round the time in the same way as `datetime` at the platform, because a record that is uploaded twice must have
    # the same time.
    second = int(timestamp)
    microsecond = round((timestamp - second) * 1_000_000)
    if microsecond == 1_000_000:
        second, microsecond = second + 1, 0
    return b'"%b.%06dZ"' % (_second(second), microsecond)


# The result is cached, because `datetime` costs as much as all other parts of a line, and many consecutive records have
# the same second.
@lru_cache(maxsize=64)
def _second(timestamp: int) -> bytes:
    return iso(timestamp).removesuffix("Z").encode("ascii")


@lru_cache(maxsize=8)
def _id(journal_id: UUID) -> bytes:
    return str(journal_id).encode("ascii")


def place(text: bytes) -> Cursor:
    """Returns the position of the entry in a line. Raises `NotALine`."""
    try:
        end = text.index(b",", _SEQUENCE_BEGINS)
        return Cursor(UUID(text[_ID_BEGINS:_ID_ENDS].decode("ascii")), int(text[_SEQUENCE_BEGINS:end]))
    except ValueError:
        raise NotALine("not a line of an audit log") from None


def where(text: bytes | None) -> Cursor | None:
    """Returns the position of the entry in a line, or None if the text is not a line."""
    try:
        return None if text is None else place(text)
    except NotALine:
        return None


def entry(text: bytes) -> bytes:
    """Returns the journal's entry of a line. Raises `NotALine`."""
    try:
        fields: dict[str, Any] = _decode(text)
        values = [fields["type"]]
        for name in _FIELDS[fields["type"]]:
            # A line of an earlier version has fewer fields.
            if name not in fields:
                break
            value = fields[name]
            if name == "timestamp" and value is None:
                break
            if name in _NESTED:
                value = [[nested[part] for part in _NESTED[name] if part in nested] for nested in value]
            elif name == "timestamp" and isinstance(value, str):
                value = datetime.fromisoformat(value).timestamp()
            elif name == "budgets":
                value = [_budget(budget) for budget in value]
            values.append(value)
        return _encode(values)
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, OverflowError):
        raise NotALine("not a line of an audit log") from None


def _budget(budget: Any) -> list[Any]:
    """Returns the id of a budget and the Unix time at which its period began. Lines of earlier versions contain this
    pair instead of an object."""
    if isinstance(budget, dict):
        return [budget["id"], int(datetime.fromisoformat(budget["period_start"]).timestamp())]
    budget_id, start = budget
    return [budget_id, start]


class AuditLog:
    """The files of the audit log. Only one thread at a time may append. A line that cannot be written is dropped,
    because the platform has the record."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._last: Cursor | None = None
        self._number = 0
        self._size = 0
        self._opened = False
        self._failing = False
        #: While it is False, because the disk is nearly full, new lines are dropped.
        self.keeping = True

    def append(self, begin: Cursor, entries: Sequence[bytes]) -> None:
        """Appends the entries. Skips the entries that the log already contains, because the process was killed before
        it stored their upload position."""
        if not self.keeping:
            return
        try:
            self._open()
            last = self._last
            existing = last.sequence + 1 - begin.sequence if last and last.journal_id == begin.journal_id else 0
            new_entries = entries[max(0, existing) :]
            if not new_entries:
                return
            first = begin.sequence + len(entries) - len(new_entries)
            cursors = [Cursor(begin.journal_id, number) for number in range(first, first + len(new_entries))]
            self._write([line(cursor, text, handed_in=True) for cursor, text in zip(cursors, new_entries, strict=True)])
            self._last, self._failing = cursors[-1], False
        except OSError as error:
            # The next append opens the file again and searches for the end of the last complete line.
            self._opened = False
            if not self._failing:
                log.warning("outpost.audit_log_not_written", reason=str(error))
            self._failing = True

    def files(self) -> dict[int, int]:
        """Returns the sizes of the files in bytes by their numbers, in ascending order."""
        sizes = {}
        for path in self._folder.glob("*.jsonl"):
            if path.stem.isdigit():
                try:
                    sizes[int(path.stem)] = path.stat().st_size
                except FileNotFoundError:
                    continue
        return dict(sorted(sizes.items()))

    def remove_oldest(self) -> bool:
        """Removes the oldest file, even if it is the only one. Returns False if there is no file."""
        numbers = list(self.files())
        if not numbers:
            return False
        self._path(numbers[0]).unlink(missing_ok=True)
        if numbers[0] == self._number:
            self._opened = False
        return True

    def read(self, spot: Spot) -> tuple[list[bytes], Spot]:
        """Returns some lines after `spot`, with their line breaks, and the position after them. Returns no lines at the
        end of the log."""
        for number in self.files():
            if number < spot.file:
                continue
            offset = spot.offset if number == spot.file else 0
            try:
                with self._path(number).open("rb") as file:
                    file.seek(offset)
                    content = file.read(_READ_BYTES)
                    if content and not content.endswith(b"\n"):
                        content += file.readline()
            except FileNotFoundError:
                continue
            content = content[: content.rfind(b"\n") + 1]
            spot = Spot(number, offset + len(content))
            if content:
                return content.splitlines(keepends=True), spot
        return [], spot

    def of(self, journal_id: UUID, first: int, batch_size: int) -> Iterator[list[bytes]]:
        """Yields consecutive entries of a journal from number `first` on, in lists of up to `batch_size`. Ends before
        the first entry that the log does not contain."""
        entries: list[bytes] = []
        expected, spot = first, Spot()
        while True:
            lines, spot = self.read(spot)
            for text in lines:
                if where(text) == (journal_id, expected):
                    entries.append(entry(text))
                    expected += 1
                    if len(entries) == batch_size:
                        yield entries
                        entries = []
            if not lines:
                if entries:
                    yield entries
                return

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.jsonl"

    def _open(self) -> None:
        """Finds the last line, and removes an incomplete line that a killed process has left."""
        if self._opened:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sizes = self.files()
        # A number is never used again, even if all files have been removed, because a reader may have a position in a
        # removed file.
        self._number, self._size = max(sizes, default=self._number + 1), 0
        self._last = None
        for number in sorted(sizes, reverse=True):
            complete_bytes, last = _end(self._path(number))
            if number == self._number:
                if complete_bytes < sizes[number]:
                    os.truncate(self._path(number), complete_bytes)
                self._size = complete_bytes
            self._last = where(last)
            if self._last is not None:
                break
        self._opened = True

    def _write(self, lines: list[bytes]) -> None:
        while lines:
            room, count = self._max_bytes - self._size, 0
            for text in lines:
                room -= len(text)
                if room < 0:
                    break
                count += 1
            if count == 0 and self._size:
                self._number, self._size = self._number + 1, 0
                for number in list(self.files())[: -(self._max_files - 1) or None]:
                    self._path(number).unlink(missing_ok=True)
                continue
            content = b"".join(lines[: max(1, count)])
            with os.fdopen(
                os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb"
            ) as file:
                file.write(content)
            self._size += len(content)
            lines = lines[max(1, count) :]


def _end(path: Path) -> tuple[int, bytes | None]:
    """Returns the offset after the last complete line, and that line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        window = _READ_BYTES
        while True:
            file.seek(max(0, size - window))
            tail = file.read(window)
            end = tail.rfind(b"\n") + 1
            begin = tail.rfind(b"\n", 0, max(0, end - 1)) + 1
            # The window must contain the beginning of the line, or the whole file.
            if (end and begin) or window >= size:
                return (size - len(tail) + end, tail[begin:end]) if end else (0, None)
            window *= 4
