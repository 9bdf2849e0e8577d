"""A few patterns of each kind, for tests."""

from gatehouse.detection.pattern import Pattern, Shape


def pattern(id: str, *shapes: Shape, context: tuple[str, ...] = ()) -> Pattern:
    return Pattern(
        id=id,
        name=id,
        entity_type=id.replace("-", "_"),
        category="secret",
        action="redact",
        threshold=0.5,
        shapes=shapes,
        context=context,
    )


def _luhn(text: str) -> bool:
    digits = [int(c) for c in text if c.isdigit()]
    return (
        sum(d if i % 2 == len(digits) % 2 else (d * 2 - 9 if d > 4 else d * 2) for i, d in enumerate(digits, 1)) % 10
        == 0
    )


CARD = pattern("card", Shape(regex=r"\b[1-9](?:[ -]?\d){12,18}\b", score=0.3, max_length=37, validator=_luhn))
KEY = pattern("key", Shape(regex=r"\bAKIA[A-Z0-9]{16}\b", score=0.9, max_length=20, opening="AKIA"))
TAX = pattern(
    "tax",
    Shape(regex=r"\b\d{2} ?\d{3} ?\d{3}\b", score=0.3, max_length=10, needs_context=True),
    Shape(regex=r"\bTX\d{6}\b", score=0.7, max_length=8),
    context=("tax", "steuer"),
)
BLOCK = pattern(
    "block",
    Shape(
        regex=r"-----BEGIN KEY-----[A-Za-z0-9\s]{0,400}-----END KEY-----",
        score=1.0,
        max_length=436,
        opening="-----BEGIN",
    ),
)
ADDRESS = pattern("address", Shape(regex=r"\b[\w.]{1,20}@[\w.]{1,20}\.[a-z]{2,4}\b", score=0.8, max_length=46))
RUN = pattern("run", Shape(regex=r"\d{5}", score=0.2, max_length=5))
RUSSIAN = pattern("russian", Shape(regex=r"паспорт (?P<value>\d{4})", score=0.9, max_length=12))
NAMED = pattern("named", Shape(regex=r"(?i)\bproject (?P<value>apollo|zeus)\b", score=1.0, max_length=14))
ALL = (CARD, KEY, TAX, BLOCK, ADDRESS, RUN, RUSSIAN, NAMED)
