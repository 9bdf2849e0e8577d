"""Changes each text in each epoch: other names, another case, or another text around it."""

import random
from itertools import pairwise

from training.entities.corpus import KINDS, Example
from training.entities.made_names import MadeNames
from training.entities.prose import Prose

#: Shares of the texts of an epoch that are converted to lower case, upper case and title case, and whose names are
#: replaced.
LOWERED, UPPERED, TITLED, SWAPPED = 0.12, 0.03, 0.03, 0.4
#: Share of the texts of an epoch that are put into a string, a field or a message of another text.
CARRIED = 0.06
CARRIERS = (
    ('{"id": 318, "text": "', '", "lang": "en"}'),
    ('{"status": "ok", "items": [{"title": "', '", "score": 0.81}]}'),
    ('{"role": "tool", "content": "', '\\n"}'),
    ('[{"type": "text", "text": "exit code 0\\n', '\\n"}], "is_error": false'),
    ('"{\\"note\\": \\"', '\\", \\"rows\\": 2}"'),
    ("- id: 9\n  description: ", "\n  state: open\n"),
    ("| 12 | ", " | open |"),
    ("2024-05-01 12:00:03 INFO message: ", " (took 12 ms)"),
    ("<p>", "</p>"),
    ("> ", "\n\nok thanks"),
)
#: Share of the replaced names that become made-up names, and share of those in tweets that become hashtags.
MADE_UP, TAGGED = 0.5, 0.08
TWEETS = ("b_wnut17", "b_btc")


class Wordings:
    """Generates variants of an example with the names of other examples."""

    def __init__(self, examples: list[Example], draw: random.Random) -> None:
        self._draw = draw
        self._names = {kind: self._named(examples, kind) for kind in KINDS}
        self._made = MadeNames(examples, draw)
        self._prose = Prose(self._made, draw)

    @staticmethod
    def _named(examples: list[Example], kind: str) -> list[str]:
        result = (e.text[s:t] for e in examples for s, t, k in e.spans if k == kind)
        return sorted({name for name in result if name[:1].isupper() and "@" not in name and "#" not in name})

    def prose(self, count: int) -> list[Example]:
        return [self._in_case(sentence) for sentence in self._prose.sentences(count)]

    def of(self, example: Example) -> Example:
        if example.spans and self._draw.random() < SWAPPED:
            example = self._swapped(example)
        example = self._in_case(example)
        return self._carried(example) if self._draw.random() < CARRIED else example

    def _carried(self, example: Example) -> Example:
        before, behind = self._draw.choice(CARRIERS)
        by = len(before)
        return Example(
            before + example.text + behind,
            example.group,
            example.source,
            [(start + by, end + by, kind) for start, end, kind in example.spans],
            [(start + by, end + by) for start, end in example.unsure],
        )

    def _in_case(self, example: Example) -> Example:
        case = self._draw.random()
        text = example.text
        if case < LOWERED:
            text = text.lower()
        elif case < LOWERED + UPPERED:
            text = text.upper()
        elif case < LOWERED + UPPERED + TITLED:
            text = text.title()
        if len(text) != len(example.text):
            return example
        return Example(text, example.group, example.source, example.spans, example.unsure)

    def _other(self, kind: str) -> str:
        return self._made.of(kind) if self._draw.random() < MADE_UP else self._draw.choice(self._names[kind])

    def _in_the_place_of(self, old: str, kind: str, source: str) -> str:
        """Return a new name in the form of the old one, for example in lower case or as a hashtag."""
        if not old.lstrip("#")[:1].isalpha():
            return old
        new = self._other(kind)
        if old.startswith("#") or (source in TWEETS and self._draw.random() < TAGGED):
            new = "#" + "".join(filter(str.isalnum, new))
        return new.lower() if old.islower() else new

    def _swapped(self, example: Example) -> Example:
        ordered = sorted(example.spans)
        if any(a[1] > b[0] for a, b in pairwise(ordered)):
            return example
        text, spans, shifts, at = "", [], [], 0
        for start, end, kind in ordered:
            old = example.text[start:end]
            kept = example.text[:start].endswith("@") or self._draw.random() < 0.3
            new = old if kept else self._in_the_place_of(old, kind, example.source)
            text += example.text[at:start]
            spans.append((len(text), len(text) + len(new), kind))
            text += new
            at = end
            shifts.append((end, len(text) - end))

        def moved(position: int) -> int:
            return position + next((by for behind, by in reversed(shifts) if position >= behind), 0)

        unsure = [(moved(s), moved(e)) for s, e in example.unsure]
        return Example(text + example.text[at:], example.group, example.source, spans, unsure)
