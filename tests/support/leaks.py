"""Searches everything that the suite has seen (answers, logs, databases) for every secret that it has created.

`secret` adds a secret, `saw` adds text that was sent or stored. The texts are in a file, which is read once at the end
for all secrets together. So the order of the calls does not matter, and they cost little while tests run.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

#: Shorter secrets, or secrets of few different characters, occur by chance.
_LEAST_CHARACTERS: Final = 10
_LEAST_DIFFERENT: Final = 5
#: Of a long secret, such as a signed token, only the end is searched for, because it is unique.
_MAX_CHARACTERS: Final = 40

#: Bits of the number by which secrets are looked up: their first bytes, as an index into a table.
_BYTES: Final = 8
_TABLE_BITS: Final = 24
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(64 - _TABLE_BITS)

_BLOCK: Final = 4 * 1024 * 1024
#: The name of a place is repeated after this many bytes.
_PIECE: Final = _BLOCK // 16
_MARK: Final = b"\n\0seen\0"


@dataclass(frozen=True)
class Leak:
    """A disclosed secret: its `kind`, the `place` where it was seen, and the text `around` it."""

    kind: str
    place: str
    around: str


class LeakDetector:
    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}
        self._seen = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this does
        #: the description of the current place: the running test
        self.during = ""

    def add_secret(self, value: str, kind: str) -> None:
        """Add a secret that must not be seen anywhere, neither before nor after this call."""
        value = value.strip()
        if len(value) < _LEAST_CHARACTERS or len(set(value)) < _LEAST_DIFFERENT:
            return
        # The secret itself, and escaped as in JSON.
        for form in {value, json.dumps(value)[1:-1]}:
            self._kinds.setdefault(form[-_MAX_CHARACTERS:].encode("utf-8", "surrogatepass"), kind)

    def add_text(self, place: str, text: str | bytes) -> None:
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        mark = _MARK + f"{place} {self.during}".strip().encode() + b"\0"
        for begin in range(0, len(raw), _PIECE):
            self._seen.write(mark + raw[begin : begin + _PIECE + _MAX_CHARACTERS])

    def leaks(self) -> list[Leak]:
        if not self._kinds:
            return []
        by_start = defaultdict(list)
        for kind in self._kinds:
            by_start[kind[:_BYTES]].append(kind)
        table = np.zeros(1 << _TABLE_BITS, dtype=bool)
        table[_slots(np.frombuffer(b"".join(by_start), dtype="<u8"))] = True
        results: dict[Leak, None] = {}
        for block, begins in self._blocks():
            for at in np.flatnonzero(table[_slots(_numbers(block))]):
                for kind in by_start.get(block[at : at + _BYTES], ()):
                    if at >= begins and block.startswith(kind, at):
                        results[self._leak(block, int(at), kind)] = None
        return list(results)

    def _blocks(self) -> Iterator[tuple[bytes, int]]:
        """Yield what was seen in pieces that begin with the end of the previous one, and the position of the new
        part."""
        self._seen.seek(0)
        before = b""
        while read := self._seen.read(_BLOCK):
            # Overlap of pieces: long enough for a secret and the name of its place.
            kept = before[-2 * _PIECE :]
            yield kept + read, max(0, len(kept) - _MAX_CHARACTERS)
            before = read
        self._seen.seek(0, 2)

    def _leak(self, block: bytes, at: int, secret: bytes) -> Leak:
        place, _, before = block[:at].rpartition(_MARK)[2].partition(b"\0")
        after = block[at + len(secret) :].partition(_MARK)[0]
        around = before[-60:] + b"<the secret>" + after[:30]
        return Leak(
            self._kinds[secret], place.decode(errors="replace"), " ".join(around.decode(errors="replace").split())
        )


def _numbers(block: bytes) -> npt.NDArray[np.uint64]:
    """Return the eight bytes from each position on as a number."""
    places = len(block) - _BYTES + 1
    numbers = np.empty(max(0, places), dtype="<u8")
    for shift in range(min(_BYTES, max(0, places))):
        number_count = (len(block) - shift) // _BYTES
        numbers[shift::_BYTES] = np.frombuffer(block, dtype="<u8", count=number_count, offset=shift)
    return numbers


def _slots(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (numbers * _MIX) >> _SHIFT


#: the instance of the suite
LEAK_DETECTOR: Final = LeakDetector()
