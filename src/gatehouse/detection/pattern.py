"""The definition of a pattern as data: the 76 built-in ones, an organization's rules and its custom patterns."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

Category: TypeAlias = Literal["secret", "pii", "financial", "medical", "infrastructure"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

ActionTier: TypeAlias = Literal["log_only", "redact", "prompt", "block"]

#: Checks the matched text, as normalised. False: no finding. True: the check digit or structure is right, which raises
#: the score to `VALID_SCORE`. None: undecided.
Validator: TypeAlias = Callable[[str], bool | None]

VALID_SCORE: Final = 1.0
#: Minimum score at which a built-in pattern acts as configured. Below it a finding is a guess, such as a number that is
#: a whole text and has a right check digit, and is only logged.
CERTAIN: Final = 0.6
#: Maximum code points of a match of an organization's own pattern in a stream.
STREAM_MAX_CHARACTERS: Final = 4096
#: Score that a context word near a match adds, up to 1.0.
CONTEXT_BONUS: Final = 0.4
#: Code points of the view before and after a match within which a context word counts.
CONTEXT_BEFORE: Final = 64
CONTEXT_AFTER: Final = 24


#: Maximum code points of a match without a literal at its beginning.
NEAR: Final = 256


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which the data of a pattern is written.

    `regex` is RE2 syntax. If it has a group named `value`, only that part is the finding. `max_length` is the longest
    match in code points: a stream holds back no more than that, so the regex must keep to it (no unbounded repetition).
    `opening` is the literal with which each match begins, if there is one: a stream then holds back nothing before it.
    Patterns longer than 128 code points must have one. `needs_context`: a match counts only near a context word of the
    pattern. `splits_at_underscore`: a `_` is a word boundary, so that the values in `card_4242.pdf` and `_4242_` stand
    alone. `not_preceded_by`, a regex that ignores case, must not match right before a finding, within `CONTEXT_BEFORE`
    code points; `preceded_by` must. `as_written`: an organization's own, which matches in the unchanged text whatever
    RE2 matches; `max_length` is then that of matches across escapes, line breaks and encodings.

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
    """A pattern. `id` is a slug, unique and never changed: events and suppressions refer to it. `context` are
    lower-case words."""

    id: str
    name: str
    entity_type: str
    category: Category
    action: ActionTier
    threshold: float
    shapes: tuple[Shape, ...]
    context: tuple[str, ...] = ()
    #: texts in which it must match, and texts in which it must not; the tests run them
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
