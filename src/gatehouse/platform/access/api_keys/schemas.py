"""Request and response bodies of the API key endpoints."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.foundation.identity import Scope

DisabledBy = Literal["owner", "administrator", "system"]


class NewApiKey(Body):
    description: Annotated[str, Field(min_length=1, max_length=255, examples=["nightly evaluation"])]
    expires_in_days: Annotated[int | None, Field(ge=1, le=3650, description="If omitted, the key never expires.")] = (
        None
    )
    scopes: Annotated[list[Scope] | None, Field(description="Requires the feature flag `api_key_scoping`.")] = None


class ApiKeyUpdate(Body):
    is_enabled: Annotated[bool, Field(examples=[False])]


class ApiKey(ResponseBody):
    id: UUID
    key_prefix: Annotated[str, Field(description="First 8 characters of the key.", examples=["gk_3kP9v"])]
    description: str
    created_at: datetime
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


class OwnedApiKey(ApiKey):
    """A key with its owner, for administrators."""

    user_id: UUID


class ApiKeyCreated(ApiKey):
    api_key: Annotated[str, Field(description="The key itself. It is shown only once.")]


class OwnedApiKeyCreated(ApiKeyCreated, OwnedApiKey):
    """A new key of a service account."""
