"""Request and response bodies of the API key endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted, partial
from gatehouse.foundation.identity import Scope

DisabledBy = Literal["owner", "administrator", "system"]
OwnSort = Literal[
    "description",
    "-description",
    "created_at",
    "-created_at",
    "last_used",
    "-last_used",
    "expires_at",
    "-expires_at",
    "month_cost_usd",
    "-month_cost_usd",
]
Sort = Literal[OwnSort, "owner", "-owner"]


class NewApiKey(Body):
    description: Annotated[str, Field(min_length=1, max_length=255, examples=["nightly evaluation"])]
    expires_in_days: Annotated[
        Annotated[int, Field(ge=1, le=3650)] | None,
        Field(description="Days from now until the key expires. Null: the key never expires."),
    ] = None
    scopes: Annotated[
        list[Scope] | None,
        Field(
            description="Null: all rights of the key's user. A list, or a change of it, requires the feature flag"
            " `api_key_scoping`."
        ),
    ] = None


@partial
class ApiKeyUpdate(NewApiKey):
    """A partial update. `expires_in_days` and `scopes` can be set to null. `scopes` are replaced as a whole."""

    is_enabled: bool = Field(default_factory=omitted, examples=[False])


class ApiKey(ResponseBody):
    id: UUID
    key_prefix: Annotated[str, Field(description="First 8 characters of the key.", examples=["gk_3kP9v"])]
    description: str
    created_at: datetime
    updated_at: Annotated[
        datetime,
        Field(description="When somebody last changed the key: the version that `ETag` and `If-Match` name."),
    ]
    last_used: datetime | None
    expires_at: datetime | None
    is_enabled: bool
    disabled_by: Annotated[
        DisabledBy | None,
        Field(description="Who disabled the key. If it was not the owner, only an administrator can enable it."),
    ]
    scopes: Annotated[list[Scope] | None, Field(description="The scopes of the key; null: all rights of its user.")]
    status: Annotated[
        Literal["active", "disabled", "expired", "suspended"],
        Field(description="Only calls with an `active` key are accepted. `suspended`: the key's user is inactive."),
    ]
    month_cost_usd: Annotated[
        float,
        Field(
            description="Cost of the key's requests since the first day of this month (UTC), without requests whose"
            " price is unknown.",
            examples=[1.25],
        ),
    ]


class OwnedApiKey(ApiKey):
    """A key with its owner, for administrators."""

    user_id: UUID
    user_name: Annotated[
        str, Field(description="The user's display name, address or user name.", examples=["Ada Lovelace"])
    ]


class ApiKeyCreated(ApiKey):
    api_key: Annotated[str, Field(description="The key itself. It is shown only once.")]


class OwnedApiKeyCreated(ApiKeyCreated, OwnedApiKey):
    """A new key of a service account."""
