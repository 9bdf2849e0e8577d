"""Types of fields that bodies of providers and models share."""

from decimal import Decimal
from typing import Annotated, Final

import msgspec
from pydantic import AfterValidator, Field, PlainSerializer

from gatehouse.foundation.http.bodies import Body
from gatehouse.policy.catalog import KeyHeader, LimitField, Quirks, RemovableField

#: One line of text, for people.
Line = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]

SLUG: Final = r"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$"
#: A provider's name in `provider/model-id`.
Slug = Annotated[str, Field(pattern=SLUG, examples=["my-endpoint"])]

#: A model's id at its provider. Slashes and colons are allowed, spaces are not.
MODEL_ID: Final = r"^[^\s\x00-\x1f\x7f]{1,255}$"
ModelId = Annotated[str, Field(pattern=MODEL_ID, examples=["gpt-4o-mini"])]

#: Maximum price: a hundred times that of the most expensive model. A higher value is a price per 1,000 or 1,000,000
#: tokens.
MAX_USD_PER_TOKEN: Final = Decimal("0.1")
#: Maximum number of digits of a price. A JSON number represents them without loss.
_MAX_DIGITS: Final = 15


def _check_digits(price: Decimal) -> Decimal:
    if len(price.normalize().as_tuple().digits) > _MAX_DIGITS:
        raise ValueError(f"must have at most {_MAX_DIGITS} significant digits")
    return price


def _check_price_per_token(price: Decimal) -> Decimal:
    if price > MAX_USD_PER_TOKEN:
        raise ValueError(
            f"must be at most {MAX_USD_PER_TOKEN}: it is USD per token, not per 1,000 or per 1,000,000 tokens"
        )
    return _check_digits(price)


def _check_price_per_thousand(price: Decimal) -> Decimal:
    if price > MAX_USD_PER_TOKEN * 1000:
        raise ValueError(f"must be at most {MAX_USD_PER_TOKEN * 1000}: it is USD per 1,000 tokens, not per 1,000,000")
    return _check_digits(price)


_MONEY = Field(strict=False, ge=0, max_digits=30)

#: USD per token, in requests.
Price = Annotated[Decimal, _MONEY, AfterValidator(_check_price_per_token), Field(examples=[0.00000015])]
#: USD per 1,000 tokens, in requests of `byoe`.
PricePerThousand = Annotated[Decimal, _MONEY, AfterValidator(_check_price_per_thousand), Field(examples=[0.00015])]
#: USD per token, in responses: a JSON number, with few enough digits that parsing it is exact.
ShownPrice = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]


class ProviderQuirks(Body):
    """The differences between a provider's API and its dialect. Null means that the preset's value applies, or else
    that there is no difference. All but `key_header`, `removed_fields` and `rerank_path` apply to chat completions."""

    key_header: Annotated[KeyHeader | None, Field(description="The header that contains the key.")] = None
    limit_field: Annotated[
        LimitField | None, Field(description="The field that limits the output; the other one is renamed to it.")
    ] = None
    developer_role: Annotated[
        bool | None, Field(description="False: messages of the role `developer` are sent as `system`.")
    ] = None
    stream_options: Annotated[
        bool | None, Field(description="False: `stream_options` is not sent; the usage of streams is estimated.")
    ] = None
    message_names: Annotated[bool | None, Field(description="False: `name` of messages is not sent.")] = None
    reasoning_content: Annotated[
        bool | None, Field(description="False: `reasoning_content` of earlier answers is not sent.")
    ] = None
    prompt_cache_key: Annotated[
        bool | None, Field(description="True: requests in another dialect keep their `prompt_cache_key`.")
    ] = None
    removed_fields: Annotated[
        list[RemovableField] | None, Field(max_length=32, description="Fields of chats that are not sent.")
    ] = None
    rerank_path: Annotated[
        str | None,
        Field(
            pattern=r"^/[A-Za-z0-9._-][A-Za-z0-9._/-]{0,254}$",
            description="The path of reranking at the provider's host.", examples=["/v1/rerank"],
        ),
    ] = None  # fmt: skip

    @property
    def record(self) -> Quirks:
        return msgspec.convert(self.model_dump(), Quirks)
