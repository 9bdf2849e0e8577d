"""The audit log that stays at the customer's: what was handed in goes on to `outpost/audit/00000001.jsonl` and so on,
one object a line.

A line holds every field of the journal's entry under its name (`engine.outcome`, `engine.notices`), so that the entry
can be made of it again: `gatehouse outpost hand-in` does. Times are ISO 8601. It begins with where the entry stood, and
so does its text: whoever looks for a place need not decode the rest. docs/outpost-records.md describes the lines.
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

from gatehouse.engine.notices import Ended, Lost, Operated
from gatehouse.engine.outcome import DlpEvent, Failed, Opened, Outcome, RuleEvent, Scanned
from gatehouse.foundation.clock import iso

log = structlog.get_logger(__name__)

_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "outcome": Outcome.__struct_fields__,
    "opened": Opened.__struct_fields__,
    "scanned": Scanned.__struct_fields__,
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
_NUMBER_BEGINS: Final = _ID_ENDS + len('","sequence":')
_TIMESTAMP: Final = b',"timestamp":'
#: The most bytes of a line up to the end of the name `timestamp`.
_HEAD_BYTES: Final = _NUMBER_BEGINS + 20 + len(',"handed_in":false') + len(_TIMESTAMP)
_BOOL: Final = (b"false", b"true")
#: Read at a time.
_PART: Final = 256 * 1024


class Cursor(NamedTuple):
    """An entry's place: its writer's journal, and its number there, from 1 on. Ordered as they were written, as long
    as one process follows another."""

    journal_id: UUID
    sequence: int


class Spot(NamedTuple):
    """In the log's files: everything before was read."""

    file: int = 0
    offset: int = 0


class NotALine(ValueError):
    """What was read is no line of an audit log."""


def line(at: Cursor, entry: bytes, *, handed_in: bool) -> bytes:
    """The entry with its names, and a line break."""
    kind, *values = _decode(entry)
    fields: dict[str, Any] = {"type": kind, **dict(zip(_FIELDS[kind], values, strict=False))}
    for name, of in _NESTED.items():
        if fields.get(name):
            fields[name] = [dict(zip(of, each, strict=False)) for each in fields[name]]
    if fields.get("budgets"):
        fields["budgets"] = [{"id": budget_id, "period_start": iso(start)} for budget_id, start in fields["budgets"]]
    timestamp = fields.pop("timestamp", None)
    time = b"null" if timestamp is None else _iso(timestamp)
    text = b'{"journal_id":"%b","sequence":%d,"handed_in":%b,"timestamp":%b,%b\n'
    return text % (_id(at.journal_id), at.sequence, _BOOL[handed_in], time, _encode(fields)[1:])


def in_current_form(of: bytes) -> bytes:
    """A line as this version writes it: earlier ones had Unix times, and some lines had none."""
    return of if _TIMESTAMP in of[:_HEAD_BYTES] else line(place(of), entry(of), handed_in=True)


def _iso(timestamp: float) -> bytes:
    # Rounded as `datetime` does on the platform: a record that is handed in twice must have one time.
    second = int(timestamp)
    microsecond = round((timestamp - second) * 1_000_000)
    if microsecond == 1_000_000:
        second, microsecond = second + 1, 0
    return b'"%b.%06dZ"' % (_second(second), microsecond)


# Records of one second come together, and what `datetime` does for each costs as much as all the rest.
@lru_cache(maxsize=64)
def _second(timestamp: int) -> bytes:
    return iso(timestamp).removesuffix("Z").encode("ascii")


@lru_cache(maxsize=8)
def _id(journal_id: UUID) -> bytes:
    return str(journal_id).encode("ascii")


def place(of: bytes) -> Cursor:
    """Of a line. Raises `NotALine`."""
    try:
        end = of.index(b",", _NUMBER_BEGINS)
        return Cursor(UUID(of[_ID_BEGINS:_ID_ENDS].decode("ascii")), int(of[_NUMBER_BEGINS:end]))
    except ValueError:
        raise NotALine("not a line of an audit log") from None


def where(of: bytes | None) -> Cursor | None:
    """Its place, of what may be no line."""
    try:
        return None if of is None else place(of)
    except NotALine:
        return None


def entry(of: bytes) -> bytes:
    """The journal's entry of a line. Raises `NotALine`."""
    try:
        told: dict[str, Any] = _decode(of)
        found = [told["type"]]
        for name in _FIELDS[told["type"]]:
            # An older version's line ends earlier.
            if name not in told:
                break
            value = told[name]
            if name == "timestamp" and value is None:
                break
            if name in _NESTED:
                value = [[each[part] for part in _NESTED[name] if part in each] for each in value]
            elif name == "timestamp" and isinstance(value, str):
                value = datetime.fromisoformat(value).timestamp()
            elif name == "budgets":
                value = [_budget(each) for each in value]
            found.append(value)
        return _encode(found)
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, OverflowError):
        raise NotALine("not a line of an audit log") from None


def _budget(of: Any) -> list[Any]:
    """A budget's id and the Unix time at which its period began. Lines of earlier versions have just that."""
    if isinstance(of, dict):
        return [of["id"], int(datetime.fromisoformat(of["period_start"]).timestamp())]
    budget_id, start = of
    return [budget_id, start]


class AuditLog:
    """One thread at a time appends. What cannot be written is left out: the platform has it."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._last: Cursor | None = None
        self._number = 0
        self._size = 0
        self._opened = False
        self._failing = False
        #: False: no line is kept until the disk has room again
        self.keeping = True

    def append(self, begin: Cursor, entries: Sequence[bytes]) -> None:
        """What is there already, because a kill came before that was noted elsewhere, is passed over."""
        if not self.keeping:
            return
        try:
            self._open()
            last = self._last
            there = last.sequence + 1 - begin.sequence if last and last.journal_id == begin.journal_id else 0
            fresh = entries[max(0, there) :]
            if not fresh:
                return
            first = begin.sequence + len(entries) - len(fresh)
            at = [Cursor(begin.journal_id, number) for number in range(first, first + len(fresh))]
            self._write([line(each, text, handed_in=True) for each, text in zip(at, fresh, strict=True)])
            self._last, self._failing = at[-1], False
        except OSError as error:
            # Opened anew next time: it looks where the last whole line ends.
            self._opened = False
            if not self._failing:
                log.warning("outpost.audit_log_not_written", reason=str(error))
            self._failing = True

    def files(self) -> dict[int, int]:
        """Sizes in bytes by number, ascending."""
        found = {}
        for path in self._folder.glob("*.jsonl"):
            if path.stem.isdigit():
                try:
                    found[int(path.stem)] = path.stat().st_size
                except FileNotFoundError:
                    continue
        return dict(sorted(found.items()))

    def remove_oldest(self) -> bool:
        """Whether there was one. The newest goes too, if it is the last."""
        numbers = list(self.files())
        if not numbers:
            return False
        self._path(numbers[0]).unlink(missing_ok=True)
        if numbers[0] == self._number:
            self._opened = False
        return True

    def read(self, spot: Spot) -> tuple[list[bytes], Spot]:
        """Lines after `spot`, with their line breaks, and where the next begin; none where nothing is there (yet)."""
        for number in self.files():
            if number < spot.file:
                continue
            offset = spot.offset if number == spot.file else 0
            try:
                with self._path(number).open("rb") as file:
                    file.seek(offset)
                    part = file.read(_PART)
                    if part and not part.endswith(b"\n"):
                        part += file.readline()
            except FileNotFoundError:
                continue
            part = part[: part.rfind(b"\n") + 1]
            spot = Spot(number, offset + len(part))
            if part:
                return part.splitlines(keepends=True), spot
        return [], spot

    def of(self, journal_id: UUID, first: int, most: int) -> Iterator[list[bytes]]:
        """The journal's entries from number `first` on, as far as all of them are kept, `most` at a time."""
        found: list[bytes] = []
        expected, spot = first, Spot()
        while True:
            lines, spot = self.read(spot)
            for each in lines:
                if where(each) == (journal_id, expected):
                    found.append(entry(each))
                    expected += 1
                    if len(found) == most:
                        yield found
                        found = []
            if not lines:
                if found:
                    yield found
                return

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.jsonl"

    def _open(self) -> None:
        """Finds the last line, and cuts off one that a kill has left torn."""
        if self._opened:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sizes = self.files()
        # Upwards, also where all were removed: a reader may be among them.
        self._number, self._size = max(sizes, default=self._number + 1), 0
        self._last = None
        for number in sorted(sizes, reverse=True):
            whole, last = _end(self._path(number))
            if number == self._number:
                if whole < sizes[number]:
                    os.truncate(self._path(number), whole)
                self._size = whole
            self._last = where(last)
            if self._last is not None:
                break
        self._opened = True

    def _write(self, lines: list[bytes]) -> None:
        while lines:
            room, count = self._max_bytes - self._size, 0
            for each in lines:
                room -= len(each)
                if room < 0:
                    break
                count += 1
            if count == 0 and self._size:
                self._number, self._size = self._number + 1, 0
                for number in list(self.files())[: -(self._max_files - 1) or None]:
                    self._path(number).unlink(missing_ok=True)
                continue
            text = b"".join(lines[: max(1, count)])
            with os.fdopen(
                os.open(self._path(self._number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb"
            ) as file:
                file.write(text)
            self._size += len(text)
            lines = lines[max(1, count) :]


def _end(path: Path) -> tuple[int, bytes | None]:
    """Where the last whole line ends, and that line."""
    size = path.stat().st_size
    with path.open("rb") as file:
        reach = _PART
        while True:
            file.seek(max(0, size - reach))
            tail = file.read(reach)
            end = tail.rfind(b"\n") + 1
            begin = tail.rfind(b"\n", 0, max(0, end - 1)) + 1
            # Its beginning must be in what was read, unless that is the file's.
            if (end and begin) or reach >= size:
                return (size - len(tail) + end, tail[begin:end]) if end else (0, None)
            reach *= 4
