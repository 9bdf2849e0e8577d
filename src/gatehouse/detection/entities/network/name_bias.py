"""Computes a bias towards the tags of well-known names (`known_names`).

The bias is smaller than the weight of the surrounding words, so that the network can still decide against it.
"""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from gatehouse.detection.entities.network import known_names as known
from gatehouse.detection.entities.network.decoding import KINDS, TAGS
from gatehouse.detection.entities.network.features import Pieces

#: Amount that is added to the logits of the tags of a known name. It was chosen on the held-out folds of the training
#: sets.
BIAS_WEIGHT: Final = 2.0

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
#: Names that are also everyday words. They count only if they are capitalized. Names of one or two letters count only
#: if they are written in capitals.
_EVERYDAY: Final = frozenset(
    known.listed(
        "alps|amazon|apple|austin|bath|bears|billboard|blur|boots|boston|braves|bruins|bush|canon|castro|chile|"
        "congress|cork|cowboys|cubs|darwin|dell|democrats|dolphins|drake|duke|eagles|economist|ellen|essex|"
        "ferguson|forbes|ford|genesis|georgia|giants|greens|guardian|harper|hillary|independent|intel|jets|jordan|"
        "journey|kent|kiss|kraft|labour|lincoln|lions|macy's|maine|mali|mars|mets|moon|muse|niger|oasis|oracle|"
        "orange|orlando|paramount|parliament|patriots|penguins|pentagon|phoenix|pixies|portland|porto|prince|puma|"
        "queen|queens|ramones|rangers|raptors|ravens|republicans|rio|rockets|roma|saints|santa|senate|shell|"
        "southwest|subway|sun|target|time|times|total|turkey|universal|usher|valve|variety|victoria|vikings|"
        "virginia|visa|vogue|warriors|who|wired|yes|york"
    )
)


def _known() -> dict[str, tuple[tuple[int, ...], bool]]:
    """Return a map from each name, in lower case, to its kinds and whether the name counts in lower case. A name is in
    the map with and without its blanks and punctuation."""
    lists = {
        "person": (known.PEOPLE,),
        "organization": (known.COMPANIES, known.MEDIA, known.TEAMS, known.BANDS, known.BODIES),
        "location": (known.COUNTRIES, known.REGIONS, known.CITIES, known.PLACES),
    }
    kinds: dict[str, set[int]] = {}
    for kind, names in lists.items():
        for name in (name for group in names for name in group):
            bare = name.removeprefix("The ").lower().rstrip(".")
            for form in {bare, "".join(filter(str.isalnum, bare))}:
                kinds.setdefault(form, set()).add(KINDS.index(kind))
    return {name: (tuple(sorted(own)), len(name) > 2 and name not in _EVERYDAY) for name, own in kinds.items()}


_KNOWN: Final = _known()
_MAX_NAME_WORDS: Final = max(name.count(" ") for name in _KNOWN) + 1


def logit_bias(text: str, read: Pieces) -> np.ndarray:
    """Return the bias, with a row for each piece and a column for each tag. A # before a name is part of the name."""
    added = np.zeros((len(read.ids), TAGS))
    for start, end, kinds in _known_names_in(text):
        inside = (read.starts < end) & (read.ends > start)
        for kind in kinds:
            added[inside, 1 + 2 * kind : 3 + 2 * kind] = BIAS_WEIGHT
    return added


def _known_names_in(text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the start, end and kinds of the longest known name at each position."""
    words = [match.span() for match in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        start = words[at][0]
        for last in range(min(at + _MAX_NAME_WORDS, len(words)) - 1, at - 1, -1):
            end = words[last][1]
            written = text[start:end]
            kinds, in_small = _KNOWN.get(written.lower(), ((), False))
            if kinds and (in_small or (written.isupper() if len(written) < 3 else not written.islower())):
                yield start - text.startswith("#", start - 1) if start else start, end, kinds
                at = last
                break
        at += 1
