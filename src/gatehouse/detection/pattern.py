"""Defines the data of a pattern. The 76 built-in patterns, an organization's rules and its custom patterns use it."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

Category: TypeAlias = Literal["secret", "pii", "financial", "medical", "infrastructure"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

ActionTier: TypeAlias = Literal["log_only", "redact", "prompt", "block"]

#: A function that checks the matched, normalised text. It returns False to reject the finding, True if the check digit
#: or structure is right, which raises the score to `VALID_SCORE`, and None if it cannot decide.
Validator: TypeAlias = Callable[[str], bool | None]

VALID_SCORE: Final = 1.0
#: Minimum score at which the configured action of a built-in pattern is taken. A finding with a lower score is a guess
#: and is only logged. An example is a complete text that is a number with a right check digit.
CERTAIN_SCORE: Final = 0.6
#: Maximum code points of a match of an organization's own pattern in a stream.
STREAM_MAX_CHARACTERS: Final = 4096
#: Amount that a context word near a match adds to the score, which is at most 1.0.
CONTEXT_BONUS: Final = 0.4
#: Code points of the view before and after a match within which a context word counts.
CONTEXT_CHARACTERS_BEFORE: Final = 64
CONTEXT_CHARACTERS_AFTER: Final = 24


#: Maximum code points of a match of a shape without an opening. Context words, seams and rejected matches are examined
#: within this distance.
NEAR_CHARACTERS: Final = 256


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which the data of a pattern can be written.

    - `regex` has RE2 syntax. If it has a group named `value`, only this group is the finding.
    - `max_length` is the maximum match length in code points. A stream holds back at most this much text, so the regex
      must have no unbounded repetition.
    - `opening` is the literal with which each match begins, if there is one. A stream then holds back no text before
      the literal. A shape with a `max_length` of more than 128 code points must have an opening.
    - `needs_context` means that a match counts only near a context word of the pattern.
    - `splits_at_underscore` means that `_` is a word boundary, so that the values in `card_4242.pdf` and `_4242_` are
      words.
    - `not_preceded_by` and `preceded_by` are regexes that ignore case. The `CONTEXT_CHARACTERS_BEFORE` code points
      before a finding must not end with a match of `not_preceded_by`, and must end with a match of `preceded_by`.
    - `as_written` marks an organization's own pattern. In the unchanged text it matches whatever RE2 matches, and
      `max_length` applies only to matches across escapes, line breaks and encodings.

    """

    regex: str
    score: float
    max_length: int
    opening: str | None = None
    validator: Validator | None = None
    needs_context: bool = False
    ignore_case: bool = False
    splits_at_underscore: bool = False
    not_preceded_by: str | None = None
    preceded_by: str | None = None
    as_written: bool = False


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern. `id` is a unique slug. It never changes, because events and suppressions refer to it. `context` has
    the context words in lower case."""

    id: str
    name: str
    entity_type: str
    category: Category
    action: ActionTier
    threshold: float
    shapes: tuple[Shape, ...]
    context: tuple[str, ...] = ()
    #: texts in which the pattern must match; the tests check them, and check that it does not match `counterexamples`
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
