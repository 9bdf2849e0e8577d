"""One pattern of the pattern tier, as data: the 76 built-in ones, an organization's rules and its custom patterns."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

Category: TypeAlias = Literal["secret", "pii", "financial", "medical", "infrastructure"]
CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)

ActionTier: TypeAlias = Literal["log_only", "redact", "prompt", "block"]

#: The matched text, as normalised. False: it is none, whatever it looks like. True: its check digit or structure is
#: right, which raises the score to `VALID_SCORE`. None: cannot tell.
Validator: TypeAlias = Callable[[str], bool | None]

VALID_SCORE: Final = 1.0
#: From this score on the built-in patterns do what their action says. Below it a finding is a guess, as a number that
#: is a whole text and has a right check digit, and is only logged.
CERTAIN: Final = 0.6
#: Code points that a match of an organization's own pattern may have in a stream.
STREAM_MAX_LENGTH: Final = 4096
#: What a context word near a match adds, up to 1.0.
CONTEXT_BONUS: Final = 0.4
#: How far before and behind a match, in code points of the view, a context word counts.
CONTEXT_BEFORE: Final = 64
CONTEXT_AFTER: Final = 24


#: Longer matches begin with a literal of their own.
NEAR: Final = 256


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which the data of a pattern is written.

    `regex` is RE2 syntax. With a group named `value` only that part is the finding. `max_length` is the longest
    match in code points: a stream holds back no more than that, so it is a promise that the regex keeps (no unbounded
    repetition). `opening` is the literal with which each match begins, where there is one: a stream then holds back
    nothing before it, and patterns longer than 128 code points must have one. `needs_context`: found only beside
    one of the pattern's context words. `splits_at_underscore`: a word boundary is also beside a `_`, so that the
    values in `card_4242.pdf` and `_4242_` stand by themselves. `not_behind`, a regex without regard to case: no
    finding stands right behind what it matches, within `CONTEXT_BEFORE` code points; `behind`: every finding does.
    `as_written`: an organization's own, which matches in a text as it is written whatever RE2 finds; `max_length`
    is then that of what is seen through escapes, line breaks and encodings.
    """

    regex: str
    score: float
    max_length: int
    opening: str | None = None
    validator: Validator | None = None
    needs_context: bool = False
    ignore_case: bool = False
    splits_at_underscore: bool = False
    not_behind: str | None = None
    behind: str | None = None
    as_written: bool = False


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is a slug, unique and never changed: events and suppressions name it. `context` are lower-case words."""

    id: str
    name: str
    entity_type: str
    category: Category
    action: ActionTier
    threshold: float
    shapes: tuple[Shape, ...]
    context: tuple[str, ...] = ()
    #: texts in which it must be found, and texts in which it must not; the tests run them
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
