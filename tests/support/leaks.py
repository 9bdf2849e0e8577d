"""Looks for every secret that the suite has made in everything that it has seen: answers, logs, databases.

`secret` takes what may be nowhere, `saw` what was said or stored. What was seen lies in a file until the end, and is
then read once for all secrets together. So it makes no difference which of the two came first, and what each costs
while tests run is next to nothing.
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

#: Shorter ones, and those of few characters, come up by chance.
_LEAST_CHARS: Final = 10
_LEAST_DIFFERENT: Final = 5
#: Of a long one, such as a signed token, its end will do: that is the part that no other has.
_MOST_CHARS: Final = 40

#: Secrets are looked for by their first bytes, as one number, in a table of as many bits.
_BYTES: Final = 8
_TABLE_BITS: Final = 24
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(64 - _TABLE_BITS)

_BLOCK: Final = 4 * 1024 * 1024
#: The name of its place stands at least so often in what was seen.
_PIECE: Final = _BLOCK // 16
_MARK: Final = b"\n\0seen\0"


@dataclass(frozen=True)
class Leak:
    """`kind` is of the secret, `place` where it was, `around` what stood there, without it."""

    kind: str
    place: str
    around: str


class Watch:
    def __init__(self) -> None:
        self._kinds: dict[bytes, str] = {}
        self._seen = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this does
        #: what is said of where something was seen: which test is running
        self.during = ""

    def secret(self, value: str, kind: str) -> None:
        """From now on, and until now, this may have been told nowhere."""
        value = value.strip()
        if len(value) < _LEAST_CHARS or len(set(value)) < _LEAST_DIFFERENT:
            return
        # As it is, and as it would stand in JSON.
        for form in {value, json.dumps(value)[1:-1]}:
            self._kinds.setdefault(form[-_MOST_CHARS:].encode("utf-8", "surrogatepass"), kind)

    def saw(self, place: str, text: str | bytes) -> None:
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        mark = _MARK + f"{place} {self.during}".strip().encode() + b"\0"
        for begin in range(0, len(raw), _PIECE):
            self._seen.write(mark + raw[begin : begin + _PIECE + _MOST_CHARS])

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
        """What was seen, in pieces, each behind the end of the one before; and where the news in it begin."""
        self._seen.seek(0)
        before = b""
        while read := self._seen.read(_BLOCK):
            # Enough to hold a secret over the cut, and the name of its place.
            kept = before[-2 * _PIECE :]
            yield kept + read, max(0, len(kept) - _MOST_CHARS)
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
    """The eight bytes from each place on, as a number."""
    places = len(block) - _BYTES + 1
    numbers = np.empty(max(0, places), dtype="<u8")
    for shift in range(min(_BYTES, max(0, places))):
        whole = (len(block) - shift) // _BYTES
        numbers[shift::_BYTES] = np.frombuffer(block, dtype="<u8", count=whole, offset=shift)
    return numbers


def _slots(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (numbers * _MIX) >> _SHIFT


#: the suite's own
WATCH: Final = Watch()
