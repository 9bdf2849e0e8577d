"""Functions that create the shapes and patterns of the catalog.

RE2's filter needs the literals of a regex. It recognizes them only if alternatives are written out (`cos_|cos-` instead
of `cos[_-]`), and if adjacent alternatives do not begin with the same characters.
"""

from gatehouse.detection.pattern import ActionTier, Category, Pattern, Shape, Validator
from gatehouse.detection.regex.trees import parser
from gatehouse.detection.separator import TEXT_BEGINS, TEXT_ENDS
from gatehouse.detection.validators import both, undecided
from gatehouse.detection.validators.dates import no_time
from gatehouse.detection.validators.secrets import token

#: Score of an uncertain finding. It is logged, but not redacted by default.
GUESS_SCORE = 0.55
#: Maximum length of a shape that does not begin with a literal.
MAX_CHARACTERS_WITHOUT_OPENING = 128
#: Beginning and end of a complete text, which may be one of several texts that are scanned together.
_BEGINNING = f"(?:^|{TEXT_BEGINS})"
_END = f"(?:$|{TEXT_ENDS})"


def width(regex: str) -> int:
    """Return the length of the longest match in code points. Uses Python's parser, so the regexes of the catalog must
    have a syntax that both RE2 and Python's `re` accept."""
    longest: int = parser.parse(regex).getwidth()[1]
    if longest >= 1 << 20:
        raise ValueError(f"the length of a match is not bounded: {regex}")
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
    """Return a `Shape` whose `max_length` is computed from the regex."""
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
    """Return a shape for `regex` as a word: no ASCII letter or digit is adjacent, and the match is not within a
    UUID."""
    return shape(
        rf"\b(?:{regex})\b",
        score,
        validator,
        needs_context=needs_context,
        ignore_case=ignore_case,
        not_preceded_by=_BEGINNING_OF_UUID,
    )


def alone(regex: str, score: float, validator: Validator = undecided, *, ignore_case: bool = False) -> Shape:
    """Return a shape for `regex` as the complete text, apart from blanks, quotes and punctuation. Such a text may be an
    answer or a field. A complete line is not enough, because columns of other numbers look the same. Unix times are
    rejected, because a complete text is more often a Unix time than such a value."""
    whole_text = rf"{_BEGINNING}[ \t\"']{{0,4}}(?P<value>{regex})[ \t\"',;.]{{0,4}}\r?\n?{_END}"
    return shape(whole_text, score, both(no_time, validator), ignore_case=ignore_case)


#: A letter of the Latin, Greek, Cyrillic, Chinese, Japanese or Korean script.
_LETTER = "[A-Za-z\u00c0-\u024f\u0370-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"


def among_words(regex: str, score: float, validator: Validator | None = None) -> Shape:
    """Return a shape for `regex` in a sentence. The word before it must end with a letter, and the word after it must
    begin with a letter. In tables and logs, other characters surround it: numbers, quotes and brackets."""
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
    """Return a shape for `regex` as a word that is not part of a row of numbers. No digit may be before or after it,
    even if up to three `separators` are between them. `separators` is the content of a character class."""
    before = rf"(?:^|[^0-9{separators}])[{separators}]{{0,3}}"
    after = rf"[{separators}]{{0,3}}(?:[^0-9{separators}]|$)"
    return shape(rf"{before}\b(?P<value>{regex})\b{after}", score, validator, ignore_case=ignore_case)


def vendor(regex: str, *, bits: float = 2.5, opening: str | None = None, score: float = 0.9) -> Shape:
    """Return a shape for a vendor's token in its published form."""
    return shape(rf"\b(?:{regex})", score, token(bits), opening=opening)


def words(comma_separated: str) -> tuple[str, ...]:
    """Return context words. For each phrase of several words, also return names of fields: for `tax id`, these are
    `tax_id`, `tax-id` and `taxid`."""
    phrases = comma_separated.split(", ")
    joined = (phrase.replace(" ", between) for phrase in phrases if " " in phrase for between in ("_", "-", ""))
    return tuple(dict.fromkeys((*phrases, *joined)))


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
    """Return a pattern of a category other than `secret`. `entity_type` is only set if several patterns have the same
    entity type; otherwise the entity type is `pattern_id`."""
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
