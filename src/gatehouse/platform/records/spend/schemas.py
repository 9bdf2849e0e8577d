"""Bodies of the responses of the endpoint of spend."""

from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import Field, PlainSerializer

from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.platform.records.minutes.aliases import AliasPart

SpentBy: TypeAlias = Literal["group", "user", "api_key"]
Sort: TypeAlias = Literal["cost_usd", "-cost_usd", "requests", "-requests", "tokens", "-tokens", "name", "-name"]
AliasSort: TypeAlias = Literal[
    "cost_usd", "-cost_usd", "requests", "-requests", "errors", "-errors", "name", "-name"
]  # fmt: skip
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float)]


class SpendTotals(ResponseBody):
    requests: Annotated[int, Field(description="All requests with a record, including refused requests.")]
    input_tokens: Annotated[
        int, Field(description="Input tokens, without tokens read from the provider's cache.", examples=[120_000])
    ]
    output_tokens: int
    cached_tokens: int
    cost_usd: Annotated[Usd, Field(description="Cost, without requests whose price is unknown.", examples=[1.25])]


class SpendItem(SpendTotals):
    id: Annotated[
        UUID | None,
        Field(
            description="Id of the group, user or API key. Null: the requests without one, which are those of"
            " users in no group"
            " or in several, of OAuth clients, or without an API key."
        ),
    ]
    name: Annotated[
        str | None,
        Field(
            description="Name of the group, name or address of the user, or description of the API key. Null if it was"
            " deleted.",
            examples=["Ada Lovelace"],
        ),
    ]
    user_id: Annotated[UUID | None, Field(description="Owner of the API key. Null for groups and users.")]


class SpendPage(ResponseBody):
    by: SpentBy
    since: Annotated[date, Field(description="First day of the period (UTC).")]
    until: Annotated[date, Field(description="Last day of the period (UTC).")]
    items: list[SpendItem]
    sum: Annotated[SpendTotals, Field(description="Totals of all items, not only of this page.")]
    total: Annotated[int, Field(description="Number of all items.")]
    page: int
    page_size: int


class AliasSpendTotals(ResponseBody):
    requests: Annotated[int, Field(description="Requests to model aliases, with copies for shadows.")]
    errors: Annotated[int, Field(description="Requests in which the provider or the gateway failed.")]
    cost_usd: Annotated[Usd, Field(description="Cost, without requests whose price is unknown.", examples=[1.25])]


class AliasTraffic(ResponseBody):
    """The requests that a total counts: those of a model alias, or of one of its deployments."""

    model_alias: Annotated[str, Field(examples=["fast"])]
    provider: Annotated[
        str | None,
        Field(
            description="The deployment to which the requests were sent. Null with `by=model_alias`, and for requests"
            " that reached no deployment, or that all deployments failed.",
            examples=["openai"],
        ),
    ]
    model_id: Annotated[str | None, Field(description="As `provider`.", examples=["gpt-4o-mini"])]
    shadow: Annotated[bool, Field(description="Whether these are copies for a shadow. False with `by=model_alias`.")]


class AliasSpendItem(AliasSpendTotals, AliasTraffic): ...


class AliasSpendPage(ResponseBody):
    by: AliasPart
    since: Annotated[date, Field(description="First day of the period (UTC).")]
    until: Annotated[date, Field(description="Last day of the period (UTC).")]
    items: list[AliasSpendItem]
    sum: Annotated[AliasSpendTotals, Field(description="Totals of all items, not only of this page.")]
    total: Annotated[int, Field(description="Number of all items.")]
    page: int
    page_size: int
