"""How the catalogue's modules write a shape.

RE2's filter knows a shape by its literals. It finds them where alternatives are written out (`cos_|cos-` rather than
`cos[_-]`) and two beside each other do not begin alike.
"""

from gatehouse.detection.pattern import ActionTier, Category, Pattern, Shape, Validator
from gatehouse.detection.regex_trees import parser
from gatehouse.detection.validators.secrets import token

#: A shape longer than this must begin with a literal.
LONGEST_WITHOUT_OPENING = 128


def width(regex: str) -> int:
    """The longest match in code points. The regexes here are written in what RE2 and Python's `re` have in common."""
    longest: int = parser.parse(regex).getwidth()[1]
    if longest >= 1 << 20:
        raise ValueError(f"not bounded: {regex}")
    return longest


def shape(
    regex: str,
    score: float,
    validator: Validator | None = None,
    *,
    opening: str | None = None,
    needs_context: bool = False,
    ignore_case: bool = False,
) -> Shape:
    """A `Shape` whose `max_length` is the regex's own."""
    return Shape(
        regex=regex,
        score=score,
        max_length=width(regex),
        opening=opening,
        validator=validator,
        needs_context=needs_context,
        ignore_case=ignore_case,
    )


def word(
    regex: str,
    score: float,
    validator: Validator | None = None,
    *,
    needs_context: bool = False,
    ignore_case: bool = False,
) -> Shape:
    """`regex` with no ASCII letter, digit or `_` before or behind it."""
    return shape(rf"\b(?:{regex})\b", score, validator, needs_context=needs_context, ignore_case=ignore_case)


def alone(regex: str, score: float, validator: Validator | None = None, *, ignore_case: bool = False) -> Shape:
    """`regex` where it is all that its line has, but for blanks and quotes: a field, a cell, a list of numbers."""
    alone_in_line = rf"(?m)^[ \t\"']{{0,4}}(?P<value>{regex})[ \t\"',;.]{{0,4}}\r?$"
    return shape(alone_in_line, score, validator, ignore_case=ignore_case)


def vendor(regex: str, *, bits: float = 2.5, opening: str | None = None, score: float = 0.9) -> Shape:
    """A token of a vendor's published form, as a word of its own."""
    return shape(rf"\b(?:{regex})", score, token(bits), opening=opening)


def words(listed: str) -> tuple[str, ...]:
    """Context words, written with commas between them."""
    return tuple(listed.split(", "))


def secret(
    entity_type: str,
    name: str,
    *shapes: Shape,
    context: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    counterexamples: tuple[str, ...] = (),
) -> Pattern:
    return Pattern(
        id=entity_type.replace("_", "-"),
        name=name,
        entity_type=entity_type,
        category="secret",
        action="redact",
        threshold=0.5,
        shapes=shapes,
        context=context,
        examples=examples,
        counterexamples=counterexamples,
    )


def entry(
    category: Category,
    action: ActionTier,
    pattern_id: str,
    name: str,
    *shapes: Shape,
    entity_type: str | None = None,
    context: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    counterexamples: tuple[str, ...] = (),
) -> Pattern:
    """A pattern of another category; its entity type is its id unless several patterns share one."""
    return Pattern(
        id=pattern_id.replace("_", "-"),
        name=name,
        entity_type=entity_type or pattern_id,
        category=category,
        action=action,
        threshold=0.5,
        shapes=shapes,
        context=context,
        examples=examples,
        counterexamples=counterexamples,
    )
