"""Compares two prefilters for the patterns: `python -m bench.dlp.filters --truth FOLDER`. It takes a few minutes.

All regexes of the built-in patterns search various texts. The prefilters take turns. The processor time per text is
printed in microseconds, as the minimum and the median of the rounds. These two select the regexes with a literal that
may match:

- `filter`: `re2.Filter`, which the product uses
- `same`: Hyperscan, which returns the regexes that match

These three return the matches of all regexes, without overlaps. The run fails unless all three return the same matches:

- `ours`: `detection.search.candidates`, which uses `filter`, skeletons for numbers, and RE2 for the selected regexes
- `mixed`: `ours` with `same` instead of `filter`
- `all`: Hyperscan for all regexes, without skeletons, and RE2 for the selected regexes

`begins` is Hyperscan alone, for the regexes of which it can return the start of a match.

As in the product, long texts are divided into slices, and shapes whose context words do not occur are left out. The
caches of skeletons and automata are filled before. The Hyperscan package from PyPI (Vectorscan for all x86-64
processors) is installed into `bench/out/env` if it is missing.
"""

import argparse
import importlib
import random
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any, Final, TypeAlias

from bench.dlp.speed import TEXTS, read, samples

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.matcher import Matcher
from gatehouse.detection.normalise import View
from gatehouse.detection.regex.skeleton import SKELETON
from gatehouse.detection.scanning.texts import SLICE
from gatehouse.detection.search.candidates import (
    ALWAYS,
    ANYWHERE,
    Candidates,
    Regex,
    SearchedPiece,
    Spans,
)

HYPERSCAN: Final = "hyperscan==0.9.1"
ENV: Final = Path(__file__).resolve().parents[1] / "out" / "env" / "hyperscan"
LENGTHS: Final = (200, 1_000, 10_000, 100_000)
#: the first and the last letter of each script
SCRIPTS: Final = ("ая", "αω", "عي", "अह", "一龥", "가힣", "ぁん")
#: The number of a regex, and the start and end of its match.
Places: TypeAlias = list[tuple[int, int, int]]


def hyperscan() -> Any:
    if not (ENV / "hyperscan").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--target", str(ENV), HYPERSCAN], check=True)
    sys.path.append(str(ENV))
    return importlib.import_module("hyperscan")


class Automaton:
    """An automaton of Hyperscan. `rough` are the numbers of the regexes that are only used as a rough filter."""

    def __init__(self, hs: Any, regexes: Sequence[Regex], flag: int, rough: Collection[int] = ()) -> None:
        flags = [
            hs.HS_FLAG_UTF8
            | flag
            | (hs.HS_FLAG_CASELESS if regex.ignore_case else 0)
            | (hs.HS_FLAG_PREFILTER if regex.number in rough else 0)
            for regex in regexes
        ]
        began = thread_time()
        database = hs.Database(mode=hs.HS_MODE_BLOCK)
        expressions = [regex.regex.encode() for regex in regexes]
        database.compile(expressions=expressions, ids=list(range(len(regexes))), flags=flags)
        self.summary = f"{len(regexes)} compiled in {thread_time() - began:.1f} s, {len(hs.dumpb(database)) >> 20} MiB"
        self._scan = database.scan

    def Match(self, data: bytes, _: bool) -> list[int]:  # noqa: N802
        """Return the indexes of the regexes that match, with the same interface as `re2.Filter`."""
        results: list[int] = []
        self._scan(data, match_event_handler=lambda place, *_: results.append(place))
        return results

    def spans(self, data: bytes) -> Places:
        places = Places()
        self._scan(data, match_event_handler=lambda place, *at: places.append((place, at[0], at[1])))
        return places


def too_large(hs: Any, regexes: Iterable[Regex], flag: int) -> list[Regex]:
    """Return the regexes that Hyperscan refuses."""
    refused = []
    for regex in regexes:
        try:
            Automaton(hs, [regex], flag)
        except hs.error:
            refused.append(regex)
    return refused


class Ways:
    def __init__(self, hs: Any) -> None:
        rules = Matcher(BUILT_IN)
        self._contexts, self._ours = rules._contexts, rules._candidates
        self._mixed = copy(self._ours)
        ((literal, filtering, _groups),) = self._ours._filters
        assert self._ours._numbers is not None
        numbers = self._ours._numbers._regexes
        self._all = [*literal, *self._ours._single_regexes, *numbers]
        self._by_number = {regex.number: regex for regex in self._all}
        print(f"{len(self._all)} regexes: {len(literal)} with a literal, {len(numbers)} by skeletons\n{HYPERSCAN}:")
        which, begin = hs.HS_FLAG_SINGLEMATCH, hs.HS_FLAG_SOM_LEFTMOST
        refused = too_large(hs, self._all, which)
        rough = {regex.number for regex in refused}
        some, self._any = Automaton(hs, literal, which, rough), Automaton(hs, self._all, which, rough)
        print(
            f"which match: {self._any.summary}; with a literal: {some.summary};"
            f" too large, so a rough filter: {len(rough)}"
        )
        for regex in refused:
            print(f"    {regex.regex[:100]}")
        refused = too_large(hs, self._all, begin)
        begun = Automaton(hs, [regex for regex in self._all if regex not in refused], begin)
        print(f"where they begin: {begun.summary}; too large, so left out: {len(refused)}")
        self._mixed._filters = [(literal, some)]
        self.by_name: dict[str, Callable[[bytes, int], Any]] = {
            "filter": lambda data, _: filtering.Match(data, True),
            "same": lambda data, _: some.Match(data, True),
            "ours": lambda data, mask: self._places(self._ours, data, mask),
            "mixed": lambda data, mask: self._places(self._mixed, data, mask),
            "all": self._found_by_all,
            "begins": lambda data, _: begun.spans(data),
        }

    def mask(self, text: str) -> int:
        """Return the mask of the context words in a text."""
        return ALWAYS | self._contexts.words_near(View(text), 0, len(text)).bits_of_all

    def _places(self, candidates: Candidates, data: bytes, mask: int) -> Places:
        end, behind, result = len(data), dict[int, int](), Places()
        piece = SearchedPiece(data, data.translate(SKELETON), 0, end, end, sys.maxsize)
        for number, spans, last in candidates.hits(piece, mask, behind):
            for match in _following(self._by_number[number], spans, data, last):
                result.append(match)
                behind[number] = max(match[2], match[1] + 1)
        return result

    def _found_by_all(self, data: bytes, mask: int) -> Places:
        places = Places()
        for place in self._any.Match(data, True):
            regex = self._all[place]
            if regex.mask & mask:
                places += _following(regex, regex.search(ANYWHERE, data, 0, len(data)), data, len(data))
        return places


def _following(regex: Regex, spans: Spans, data: bytes, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield a match, and the following matches that begin before `last`."""
    begin, end = spans[0]
    while 0 <= begin < last:
        yield regex.number, begin, end
        if (place := max(end, begin + 1)) >= last:
            return
        begin, end = regex.search(ANYWHERE, data, place, len(data))[0]


def written(*alphabets: str) -> str:
    """Return half a megabyte of random words."""
    rnd = random.Random(1)
    letters = [[chr(point) for point in range(ord(ends[0]), ord(ends[1]) + 1)] for ends in alphabets]
    return " ".join("".join(rnd.choices(rnd.choice(letters), k=rnd.randint(2, 10))) for _ in range(80_000))


def measured(ways: Ways, whole: str, length: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the microseconds per text for each way: the minimum and the median of the rounds. Each is the median of
    several texts."""
    texts = [text.encode()[:length].decode(errors="ignore") for text in samples(whole, length)]
    slices = [[text[start : start + SLICE] for start in range(0, len(text), SLICE)] for text in texts]
    requests = [[(part.encode(), ways.mask(part)) for part in parts] for parts in slices]
    for part in chain(*requests):
        ours, mixed, by_all = (sorted(ways.by_name[name](*part)) for name in ("ours", "mixed", "all"))
        assert ours == mixed == by_all, part
    times = max(1, 20_000 // length)
    spent: dict[str, list[list[float]]] = {name: [[] for _ in requests] for name in ways.by_name}
    for _ in range(rounds):
        for place, parts in enumerate(requests):
            for name, way in ways.by_name.items():
                began = thread_time()
                for _ in range(times):
                    for data, mask in parts:
                        way(data, mask)
                spent[name][place].append((thread_time() - began) / times * 1e6)
    return {name: (median(map(min, item)), median(map(median, item))) for name, item in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    ways = Ways(hyperscan())
    texts = {name: read(chosen.truth, file) for name, file in TEXTS.items()}
    texts |= {"random words": written("az", "AZ", "az"), "other scripts": written(*SCRIPTS)}
    print(f"\n{'microseconds':24}" + "".join(f"{name:>18}" for name in ways.by_name))
    for name, whole in texts.items():
        for length in LENGTHS:
            figures = measured(ways, whole, length, chosen.rounds).values()
            result = "".join(f"{least:9.1f} ({middle:.1f})".rjust(18) for least, middle in figures)
            print(f"{name:14}{length:>10,}{result}", flush=True)


if __name__ == "__main__":
    main()
