"""How the catalogue's modules write a shape.

RE2's filter knows a shape by its literals. It finds them where alternatives are written out (`cos_|cos-` rather than
`cos[_-]`) and two beside each other do not begin alike.
"""

from gatehouse.detection.pattern import ActionTier, Category, Pattern, Shape, Validator
from gatehouse.detection.regex.trees import parser
from gatehouse.detection.separator import TEXT_BEGINS, TEXT_ENDS
from gatehouse.detection.validators import both, undecided
from gatehouse.detection.validators.dates import no_time
from gatehouse.detection.validators.secrets import token

#: The score of what looks like something and may well be something else: found, logged, and not redacted by default.
GUESS = 0.55
#: A shape longer than this must begin with a literal.
MAX_CHARACTERS_WITHOUT_OPENING = 128
#: Of the whole text, or of one of the texts that it is made of.
_BEGINNING = f"(?:^|{TEXT_BEGINS})"
_END = f"(?:$|{TEXT_ENDS})"


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
    not_preceded_by: str | None = None,
    preceded_by: str | None = None,
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
        splits_at_underscore=True,
        not_preceded_by=not_preceded_by,
        preceded_by=preceded_by,
    )


_BEGINNING_OF_UUID = r"(?:^|[^0-9a-z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){1,3}"


def word(
    regex: str,
    score: float,
    validator: Validator | None = None,
    *,
    needs_context: bool = False,
    ignore_case: bool = False,
) -> Shape:
    """`regex` with no ASCII letter or digit before or behind it, and not in the midst of a UUID."""
    return shape(
        rf"\b(?:{regex})\b",
        score,
        validator,
        needs_context=needs_context,
        ignore_case=ignore_case,
        not_preceded_by=_BEGINNING_OF_UUID,
    )


def alone(regex: str, score: float, validator: Validator = undecided, *, ignore_case: bool = False) -> Shape:
    """`regex` where it is all that the text has, but for blanks and quotes: an answer to a question, a field. Not where
    it is all that a line has: columns of other numbers look the same. Nor a Unix time: that is what a program's whole
    answer is more often than any of these."""
    whole_text = rf"{_BEGINNING}[ \t\"']{{0,4}}(?P<value>{regex})[ \t\"',;.]{{0,4}}\r?\n?{_END}"
    return shape(whole_text, score, both(no_time, validator), ignore_case=ignore_case)


#: Of Latin, Greek, Cyrillic, and the scripts of China, Japan and Korea.
_LETTER = "[A-Za-z\u00c0-\u024f\u0370-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"


def among_words(regex: str, score: float, validator: Validator | None = None) -> Shape:
    """`regex` in a sentence: a letter stands before it and behind it, if anything does. In tables and logs it stands
    among numbers, quotes and brackets."""
    before = rf"(?:{_BEGINNING}|{_LETTER}[,:;.]?\s)"
    after = rf"[.,;:!?)]{{0,2}}(?:\s{_LETTER}|{_END})"
    return shape(rf"{before}(?P<value>{regex}){after}", score, validator)


def isolated(
    regex: str,
    separators: str,
    score: float,
    validator: Validator | None = None,
    *,
    ignore_case: bool = False,
) -> Shape:
    """`regex` as a word that is not one of a row: no digit stands before or behind it, nor before or behind up to three
    of the characters `separators`, which are written as in a class."""
    before = rf"(?:^|[^0-9{separators}])[{separators}]{{0,3}}"
    after = rf"[{separators}]{{0,3}}(?:[^0-9{separators}]|$)"
    return shape(rf"{before}\b(?P<value>{regex})\b{after}", score, validator, ignore_case=ignore_case)


def vendor(regex: str, *, bits: float = 2.5, opening: str | None = None, score: float = 0.9) -> Shape:
    """A token of a vendor's published form, as a word of its own."""
    return shape(rf"\b(?:{regex})", score, token(bits), opening=opening)


def words(listed: str) -> tuple[str, ...]:
    """Context words, written with commas between them; of several words also as names of fields: `tax_id`, `taxId`."""
    written = listed.split(", ")
    joined = (word.replace(" ", between) for word in written if " " in word for between in ("_", "-", ""))
    return tuple(dict.fromkeys((*written, *joined)))


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
