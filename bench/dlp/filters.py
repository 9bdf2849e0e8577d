"""Compares RE2 and Hyperscan as prefilters for the patterns, in six variants. It takes a few minutes.

    .venv/bin/python -m bench.dlp.filters --truth FOLDER

The regexes of the built-in patterns search various texts. The variants take turns. The processor time per text is
printed in microseconds, as the minimum and the median of the rounds. These two search only for regexes that contain a
literal. They return the regexes that may match the text:

- `filter`: `re2.Filter`, which the product uses
- `hyperscan`: Hyperscan, for the same regexes. It returns those that match.

These three return the matches of all regexes, without overlaps. The run fails unless all three return the same matches:

- `ours`: `detection.search.candidates`, which uses `filter`, skeletons for numbers, and RE2 for the selected regexes
- `mixed`: `ours` with `hyperscan` instead of `filter`
- `all`: Hyperscan for all regexes, without skeletons, and RE2 for the selected regexes

`begins` is Hyperscan alone. For the regexes that it supports in this mode, it returns where matches begin.

As in the product, long texts are divided into slices, and shapes whose context words do not occur are left out. The
times do not include the search for context words. The caches of skeletons and automata are filled before. The Hyperscan
package from PyPI (Vectorscan for all x86-64 processors) is installed into `bench/out/env` if it is missing.
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
from gatehouse.detection.scanning.texts import MAX_SLICE_CHARACTERS
from gatehouse.detection.search.candidates import (
    ALWAYS,
    ANYWHERE,
    Candidates,
    Regex,
    SearchedPiece,
    Spans,
    _LiteralRegexes,
)
from gatehouse.detection.search.context_words import NearbyWords

HYPERSCAN: Final = "hyperscan==0.9.1"
ENV: Final = Path(__file__).resolve().parents[1] / "out" / "env" / "hyperscan"
LENGTHS: Final = (200, 1_000, 10_000, 100_000)
#: The first and the last letter of each script.
SCRIPTS: Final = ("ая", "αω", "عي", "अह", "一龥", "가힣", "ぁん")
#: Matches: the regex, and the start and end of the match. `Automaton.spans` identifies a regex by its index in the list
#: of the automaton. Elsewhere, it is identified by its `Regex.number`.
Places: TypeAlias = list[tuple[int, int, int]]


def hyperscan() -> Any:
    """Import Hyperscan. It is installed first if it is missing."""
    if not (ENV / "hyperscan").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--target", str(ENV), HYPERSCAN], check=True)
    sys.path.append(str(ENV))
    return importlib.import_module("hyperscan")


class Automaton:
    """An automaton of Hyperscan. `prefiltered` are the numbers of the regexes that Hyperscan can only prefilter: it
    may report such a regex for a text that does not match."""

    def __init__(self, hs: Any, regexes: Sequence[Regex], flag: int, prefiltered: Collection[int] = ()) -> None:
        flags = [
            hs.HS_FLAG_UTF8
            | flag
            | (hs.HS_FLAG_CASELESS if regex.ignore_case else 0)
            | (hs.HS_FLAG_PREFILTER if regex.number in prefiltered else 0)
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
        """Return the matches of all regexes."""
        places = Places()
        self._scan(data, match_event_handler=lambda place, *at: places.append((place, at[0], at[1])))
        return places


def refused_by_hyperscan(hs: Any, regexes: Iterable[Regex], flag: int) -> list[Regex]:
    """Return the regexes that Hyperscan refuses."""
    refused = []
    for regex in regexes:
        try:
            Automaton(hs, [regex], flag)
        except hs.error:
            refused.append(regex)
    return refused


class Prefilters:
    """The variants to compare. `by_name` maps the names in the module's docstring to the functions."""

    def __init__(self, hs: Any) -> None:
        rules = Matcher(BUILT_IN)
        self._contexts, self._ours = rules._contexts, rules._candidates
        (literals,) = self._ours._filters
        assert self._ours._numbers is not None
        numbers = self._ours._numbers._regexes
        self._all = [*literals.regexes, *self._ours._single_regexes, *numbers]
        self._by_number = {regex.number: regex for regex in self._all}
        print(
            f"{len(self._all)} regexes: {len(literals.regexes)} with a literal, {len(numbers)} by skeletons"
            f"\n{HYPERSCAN}:"
        )
        single_match, start_of_match = hs.HS_FLAG_SINGLEMATCH, hs.HS_FLAG_SOM_LEFTMOST
        refused = refused_by_hyperscan(hs, self._all, single_match)
        prefiltered = {regex.number for regex in refused}
        literal_automaton = Automaton(hs, literals.regexes, single_match, prefiltered)
        self._automaton = Automaton(hs, self._all, single_match, prefiltered)
        print(
            f"automaton that reports which regexes match: {self._automaton.summary}\n"
            f"automaton that reports which regexes with a literal match: {literal_automaton.summary}\n"
            f"refused by Hyperscan and only prefiltered: {len(refused)}"
        )
        for regex in refused:
            print(f"    {regex.regex[:100]}")
        refused = refused_by_hyperscan(hs, self._all, start_of_match)
        start_automaton = Automaton(hs, [regex for regex in self._all if regex not in refused], start_of_match)
        print(
            f"automaton that reports where matches begin: {start_automaton.summary};"
            f" refused by Hyperscan and left out: {len(refused)}"
        )
        self._mixed = copy(self._ours)
        # Hyperscan reports only regexes that match, so the combined searches of groups are not needed.
        no_groups = [None] * len(literals.regexes)
        self._mixed._filters = [_LiteralRegexes(literals.regexes, literal_automaton, no_groups)]
        self.by_name: dict[str, Callable[[bytes, NearbyWords], Any]] = {
            "filter": lambda data, _: literals.filter.Match(data, True),
            "hyperscan": lambda data, _: literal_automaton.Match(data, True),
            "ours": lambda data, words: self._matches(self._ours, data, words),
            "mixed": lambda data, words: self._matches(self._mixed, data, words),
            "all": self._matches_of_automaton,
            "begins": lambda data, _: start_automaton.spans(data),
        }

    def words(self, text: str) -> NearbyWords:
        """Search for the context words in a text."""
        words = NearbyWords(self._contexts, View(text), 0, len(text))
        assert words.positions is not None
        return words

    def _matches(self, candidates: Candidates, data: bytes, words: NearbyWords) -> Places:
        end, resume, matches = len(data), dict[int, int](), Places()
        piece = SearchedPiece(data, data.translate(SKELETON), 0, end, end, sys.maxsize)
        for number, spans, last in candidates.hits(piece, words, resume):
            for match in _following(self._by_number[number], spans, data, last):
                matches.append(match)
                resume[number] = max(match[2], match[1] + 1)
        return matches

    def _matches_of_automaton(self, data: bytes, words: NearbyWords) -> Places:
        matches = Places()
        for index in self._automaton.Match(data, True):
            regex = self._all[index]
            if regex.mask == ALWAYS or words.have(regex.mask):
                matches += _following(regex, regex.search(ANYWHERE, data, 0, len(data)), data, len(data))
        return matches


def _following(regex: Regex, spans: Spans, data: bytes, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield a match, and the following matches that begin before `last`."""
    begin, end = spans[0]
    while 0 <= begin < last:
        yield regex.number, begin, end
        if (place := max(end, begin + 1)) >= last:
            return
        begin, end = regex.search(ANYWHERE, data, place, len(data))[0]


def random_words(*alphabets: str) -> str:
    """Return 80,000 random words: 0.5 MB in UTF-8 for Latin letters, 1.3 MB for other scripts."""
    rnd = random.Random(1)
    letters = [[chr(point) for point in range(ord(ends[0]), ord(ends[1]) + 1)] for ends in alphabets]
    return " ".join("".join(rnd.choices(rnd.choice(letters), k=rnd.randint(2, 10))) for _ in range(80_000))


def measured(prefilters: Prefilters, whole: str, length: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Measure each prefilter on texts of `length` bytes from `whole`. For each text, compute minimum and median over
    the rounds. Return the median of both over all texts, in microseconds."""
    texts = [text.encode()[:length].decode(errors="ignore") for text in samples(whole, length)]
    requests = [[(part.encode(), prefilters.words(part)) for part in _slices(text)] for text in texts]
    for part in chain(*requests):
        ours, mixed, by_all = (sorted(prefilters.by_name[name](*part)) for name in ("ours", "mixed", "all"))
        assert ours == mixed == by_all, part[0]
    runs = max(1, 20_000 // length)
    spent: dict[str, list[list[float]]] = {name: [[] for _ in requests] for name in prefilters.by_name}
    for _ in range(rounds):
        for index, parts in enumerate(requests):
            for name, prefilter in prefilters.by_name.items():
                began = thread_time()
                for _ in range(runs):
                    for data, words in parts:
                        prefilter(data, words)
                spent[name][index].append((thread_time() - began) / runs * 1e6)
    return {name: (median(map(min, item)), median(map(median, item))) for name, item in spent.items()}


def _slices(text: str) -> list[str]:
    return [text[start : start + MAX_SLICE_CHARACTERS] for start in range(0, len(text), MAX_SLICE_CHARACTERS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="the folder of the labelled texts")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    prefilters = Prefilters(hyperscan())
    texts = {name: read(arguments.truth, file) for name, file in TEXTS.items()}
    texts |= {"random words": random_words("az", "AZ", "az"), "other scripts": random_words(*SCRIPTS)}
    print(f"\n{'microseconds':24}" + "".join(f"{name:>18}" for name in prefilters.by_name))
    for name, whole in texts.items():
        for length in LENGTHS:
            figures = measured(prefilters, whole, length, arguments.rounds).values()
            result = "".join(f"{least:9.1f} ({middle:.1f})".rjust(18) for least, middle in figures)
            print(f"{name:14}{length:>10,}{result}", flush=True)


if __name__ == "__main__":
    main()
