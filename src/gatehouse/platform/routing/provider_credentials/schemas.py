"""Bodies of the credentials of providers (docs/providers.md)."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, without
from gatehouse.policy.catalog import CredentialState

LABEL = r"^[a-z0-9][a-z0-9-]{0,31}$"

Label = Annotated[str, Field(pattern=LABEL, description="Letters, digits and dashes.", examples=["second"])]
State = Annotated[
    CredentialState,
    Field(
        description="`active` credentials are used in turn. A `draining` one is used only if no active one is"
        " available, a `disabled` one never.",
        examples=["draining"],
    ),
]


class SecretFields(Body):
    """The required fields depend on the provider's kind. They are sealed and never returned."""

    api_key: Annotated[str | None, Field(description="For kinds with an API key.", examples=["sk-..."])] = None
    cloud_access_key_id: Annotated[str | None, Field(description="For `bedrock` (the cloud-managed kind).")] = None
    cloud_secret_access_key: Annotated[str | None, Field(description="For `bedrock` (the cloud-managed kind).")] = None
    cloud_session_token: Annotated[str | None, Field(description="`bedrock`: the session token of temporary keys.")] = (
        None
    )
    service_account_key: Annotated[
        str | dict[str, Any] | None,
        Field(description="`vertex_ai`: the JSON key of a service account, as an object or as its text."),
    ] = None
    entra_client_secret: Annotated[
        str | None, Field(description="`azure_openai`: a secret of the provider's application.")
    ] = None


class NewCredential(SecretFields):
    label: Label
    state: State = "active"


@without("label", *SecretFields.model_fields)
class CredentialUpdate(NewCredential):
    # Required, because it is the only field.
    state: State


class ProviderCredential(ResponseBody):
    label: Annotated[str, Field(description="`default`: the credential that the provider was created with.")]
    state: State
    created_at: datetime
    rotated_at: Annotated[datetime | None, Field(description="When the secret was set.")]
    updated_at: Annotated[
        datetime,
        Field(
            description="Time of the last change, from which the `ETag` is made. For the default"
            " credential: the provider's."
        ),
    ]


class ProviderCredentials(ResponseBody):
    credentials: Annotated[
        list[ProviderCredential], Field(description="The default credential first, the others by label.")
    ]
