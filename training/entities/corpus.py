"""Reads sentences with labelled names from the sets whose licence allows training."""

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gatehouse.detection.units import units

KINDS = ("person", "organization", "location")
TRAINED_SETS = ("b_wnut17", "b_btc", "b_sec", "b_re3d_gov")
HANDLE = re.compile(r"@\w+")
#: Nominal mentions in re3d ("the Prime Minister", "we", "at least 35 civilians"), which are not names.
_NOMINAL = re.compile(
    r"(?i)(the |a |an |our |its |his |their |this |these |new |former |other )*"
    r"((prime |foreign |defence |first )?(minister|secretary|president|ambassador|chairman|commissioner|members?|"
    r"government|coalition|council|state|country|region)s?|we|us|our|they|it|he|she|who)\b.{0,12}"
)

#: Names of peoples, which are not places. The sets label them differently.
_DEMONYM = re.compile(
    r"(?i)(afghan|african|albanian|american|arab|argentin(e|ian)|armenian|asian|australian|austrian|belgian|brazilian|"
    r"british|bulgarian|canadian|catalan|chilean|chinese|colombian|cornish|croatian|cuban|czech|danish|dutch|egyptian|"
    r"english|estonian|ethiopian|european|finnish|french|georgian|german|greek|hungarian|icelandic|indian|indonesian|"
    r"iranian|iraqi|irish|israeli|italian|japanese|jordanian|kenyan|korean|latvian|lebanese|libyan|lithuanian|malaysian|"
    r"mexican|moroccan|nigerian|norwegian|pakistani|palestinian|peruvian|polish|portuguese|romanian|russian|saudi|"
    r"scottish|serbian|somali|spanish|swedish|swiss|syrian|taiwanese|tasmanian|texan|thai|tunisian|turkish|ukrainian|"
    r"vietnamese|victorian|welsh)s?"
)


@dataclass
class Example:
    """A text. `spans` has the start, end and kind of each name. `unsure` has the start and end of spans that are
    neither trained as names nor as other text."""

    text: str
    group: str
    source: str
    spans: list[tuple[int, int, str]] = field(default_factory=list)
    unsure: list[tuple[int, int]] = field(default_factory=list)


def load(truth: Path, name: str) -> list[Example]:
    """Return the texts of one set, unchanged."""
    results: dict[str, Example] = {}
    with gzip.open(truth / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            example = results.setdefault(row["doc_id"], Example(row["text"], row["group"], name))
            if row["is_positive"] and row["label"] in KINDS:
                _take(example, row)
    for example in results.values():
        example.unsure += [handle.span() for handle in HANDLE.finditer(example.text)]
    return list(results.values())


def _take(example: Example, row: dict[str, object]) -> None:
    start, end, kind = int(row["start"]), int(row["end"]), str(row["label"])  # type: ignore[call-overload]
    written = example.text[start:end]
    if example.source == "b_sec" and written.lower() in ("borrower", "lender"):
        return  # a role in a contract
    if example.source == "b_re3d_gov":
        if not re.search(r"[A-Z]", written) or _NOMINAL.fullmatch(written):
            example.unsure.append((start, end))
            return
        if written.lower().startswith("the "):
            start += 4
    if not _DEMONYM.fullmatch(written):
        example.spans.append((start, end, kind))


def in_units(examples: list[Example]) -> Iterator[Example]:
    """Yield the examples, divided into units in the same way as in the product."""
    for whole in examples:
        for start, end in units(whole.text):
            yield Example(
                whole.text[start:end],
                whole.group,
                whole.source,
                [(max(s, start) - start, min(e, end) - start, k) for s, e, k in whole.spans if s < end and e > start],
                [(max(s, start) - start, min(e, end) - start) for s, e in whole.unsure if s < end and e > start],
            )
