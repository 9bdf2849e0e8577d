"""Kinds of fields that providers and models share."""

from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, Field, PlainSerializer

#: One line of text that a person reads.
Line = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]

SLUG: Final = r"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$"
#: A provider's name in `provider/model-id`.
Slug = Annotated[str, Field(pattern=SLUG, examples=["my-endpoint"])]

#: A model as its provider calls it: it may hold slashes and colons, no spaces.
MODEL_ID: Final = r"^[^\s\x00-\x1f\x7f]{1,255}$"
ModelId = Annotated[str, Field(pattern=MODEL_ID, examples=["gpt-4o-mini"])]

#: USD a token: a hundred times the dearest model there is. More is a price a thousand or a million tokens.
DEAREST: Final = Decimal("0.1")
#: What a JSON number carries without loss.
_DIGITS: Final = 15


def _exact(price: Decimal) -> Decimal:
    if len(price.normalize().as_tuple().digits) > _DIGITS:
        raise ValueError(f"must have at most {_DIGITS} significant digits")
    return price


def _a_token(price: Decimal) -> Decimal:
    if price > DEAREST:
        raise ValueError(f"must be at most {DEAREST}: it is USD per token, not per 1,000 or per 1,000,000 tokens")
    return _exact(price)


def _a_thousand(price: Decimal) -> Decimal:
    if price > DEAREST * 1000:
        raise ValueError(f"must be at most {DEAREST * 1000}: it is USD per 1,000 tokens, not per 1,000,000")
    return _exact(price)


_MONEY = Field(strict=False, ge=0, max_digits=30)

#: USD a token, as it is asked for.
Price = Annotated[Decimal, _MONEY, AfterValidator(_a_token), Field(examples=[0.00000015])]
#: USD a thousand tokens, as `byoe` asks for it.
PricePerThousand = Annotated[Decimal, _MONEY, AfterValidator(_a_thousand), Field(examples=[0.00015])]
#: USD a token, as it is shown: a JSON number. Its digits are few enough that it reads back exactly.
ShownPrice = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
