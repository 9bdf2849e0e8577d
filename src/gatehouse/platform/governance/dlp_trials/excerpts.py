"""Makes excerpts around matches in which all matches are masked: letters as `x`, digits as `9`."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gatehouse.engine.dlp.decide import Hit

#: Maximum code points of the excerpt on each side of a match.
CONTEXT_CHARACTERS: Final = 30
#: Maximum code points of the match in the excerpt.
MAX_MATCH_CHARACTERS: Final = 80


def mask_text(text: str) -> str:
    return "".join("9" if char.isdigit() else "x" if char.isalpha() else char for char in text)


def excerpt(text: str, start: int, end: int, masked_spans: Sequence[tuple[int, int]]) -> str:
    """Return the excerpt around a match. `masked_spans` are sorted and disjoint, and include the match."""
    first = max(0, start - CONTEXT_CHARACTERS)
    last = min(len(text), min(end, start + MAX_MATCH_CHARACTERS) + CONTEXT_CHARACTERS)
    pieces: list[str] = []
    position = first
    for span in masked_spans[max(0, bisect_right(masked_spans, (first, 0)) - 1) :]:
        begin, stop = max(span[0], position), min(span[1], last)
        if span[0] >= last:
            break
        if stop > begin:
            pieces += (text[position:begin], mask_text(text[begin:stop]))
            position = stop
    return "".join([*pieces, text[position:last]])


def merged_spans(hits: Iterable[Hit]) -> list[tuple[int, int]]:
    """Return the union of the hits' spans, sorted and disjoint."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((hit.finding.start, hit.finding.end) for hit in hits):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def excerpts(
    texts: Sequence[str], hits: Sequence[Sequence[Hit]], others: Sequence[Sequence[Hit]]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the index of a text and an excerpt for each of its hits. The spans of the hits in `others` are masked
    too."""
    for index, text in enumerate(texts):
        if hits[index]:
            masked_spans = merged_spans([*hits[index], *others[index]])
            for hit in hits[index]:
                finding, rule = hit.finding, hit.rule
                yield (
                    index,
                    {
                        "rule_name": rule.name,
                        "entity_type": rule.entity_type,
                        "start": finding.start,
                        "end": finding.end,
                        "score": round(finding.score, 4),
                        "excerpt": excerpt(text, finding.start, finding.end, masked_spans),
                    },
                )
