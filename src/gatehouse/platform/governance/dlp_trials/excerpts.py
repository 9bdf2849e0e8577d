"""What a match looks like without what it says: its letters are `x`, its digits `9`, as are those of other matches."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gatehouse.engine.dlp.decide import Hit

#: Code points on each side of a match.
AROUND: Final = 30
#: Of the match itself.
LONGEST: Final = 80


def masked(text: str) -> str:
    return "".join("9" if char.isdigit() else "x" if char.isalpha() else char for char in text)


def excerpt(text: str, start: int, end: int, hidden: Sequence[tuple[int, int]]) -> str:
    """`hidden` are stretches in order, apart from each other, that are masked as the match is."""
    first, last = max(0, start - AROUND), min(len(text), min(end, start + LONGEST) + AROUND)
    pieces: list[str] = []
    place = first
    for stretch in hidden[max(0, bisect_right(hidden, (first, 0)) - 1) :]:
        begin, stop = max(stretch[0], place), min(stretch[1], last)
        if stretch[0] >= last:
            break
        if stop > begin:
            pieces += (text[place:begin], masked(text[begin:stop]))
            place = stop
    return "".join([*pieces, text[place:last]])


def stretches(hits: Iterable[Hit]) -> list[tuple[int, int]]:
    """What any of them covers, in order, apart from each other."""
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
    """Of the matches of each text, with the text's number; what `others` found is masked, too."""
    for number, text in enumerate(texts):
        if hits[number]:
            hidden = stretches([*hits[number], *others[number]])
            for hit in hits[number]:
                finding, rule = hit.finding, hit.rule
                yield (
                    number,
                    {
                        "rule_name": rule.name,
                        "entity_type": rule.entity_type,
                        "start": finding.start,
                        "end": finding.end,
                        "score": round(finding.score, 4),
                        "excerpt": excerpt(text, finding.start, finding.end, hidden),
                    },
                )
