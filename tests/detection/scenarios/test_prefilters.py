"""The comparison of prefilters (`bench/dlp/filters.py`) runs with the current code of the search."""

from collections.abc import Callable, Sequence

import re2
from bench.dlp.filters import Prefilters, measured

#: Two texts of 200 bytes, with matches of regexes with and without literals, and with context words.
TEXTS = (
    "The card 4111 1111 1111 1111 of ada@example.com was charged, and her SSN 219-09-9999 is on file. "
    "Her key is AKIAIOSFODNN7EXAMPLE, and the server is 10.0.0.1.".ljust(200)
    + "Passport number 123456789, IBAN DE89 3704 0044 0532 0130 00, phone +44 20 7946 0958.".ljust(200)
)


class Database:
    """A replacement for Hyperscan's database, which is no dependency. It searches with RE2."""

    def __init__(self, *, mode: int) -> None:
        self._regexes: list[tuple[int, re2._Regexp[bytes]]] = []

    def compile(self, *, expressions: Sequence[bytes], ids: Sequence[int], flags: Sequence[int]) -> None:
        for expression, index, flag in zip(expressions, ids, flags, strict=True):
            options = re2.Options()
            options.case_sensitive = not flag & Hyperscan.HS_FLAG_CASELESS
            self._regexes.append((index, re2.compile(expression, options)))

    def scan(self, data: bytes, *, match_event_handler: Callable[..., object]) -> None:
        for index, regex in self._regexes:
            if (match := regex.search(data)) is not None:
                match_event_handler(index, *match.span(), 0, None)


class Hyperscan:
    HS_FLAG_CASELESS, HS_FLAG_UTF8, HS_FLAG_PREFILTER, HS_FLAG_SINGLEMATCH, HS_FLAG_SOM_LEFTMOST = 1, 2, 4, 8, 16
    HS_MODE_BLOCK = 0
    Database = Database
    error = re2.error

    @staticmethod
    def dumpb(database: Database) -> bytes:
        return b""


def test_all_prefilters_find_the_same_matches() -> None:
    prefilters = Prefilters(Hyperscan)
    first = TEXTS[:200]
    assert len(prefilters.by_name["ours"](first.encode(), prefilters.words(first))) > 4
    # `measured` fails if the matches differ.
    assert measured(prefilters, TEXTS, 200, 1).keys() == prefilters.by_name.keys()
