"""Endpoints of OAuth clients. `{client_id}` is the public id."""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request

from gatehouse.administration.etags import READ_METHODS, TheVersions
from gatehouse.foundation.http.lists import search_parameter, sort_parameter
from gatehouse.foundation.identity import Caller
from gatehouse.platform.access.oauth_clients import service, table, variants
from gatehouse.platform.access.oauth_clients.schemas import (
    NewOAuthClient,
    OAuthClient,
    OAuthClientCreated,
    OAuthClientPage,
    OAuthClientUpdate,
    RotatedSecret,
    SecretRotation,
)
from gatehouse.platform.access.oauth_clients.table import OAuthClientRow
from gatehouse.platform.request.callers import RESPONSES, ClientAdmin, ClientReader
from gatehouse.platform.request.injected import Changing, Session
from gatehouse.platform.request.ports import TheHost

BASE = "/api/admin/oauth-clients/"

router = APIRouter(tags=["OAuth clients"], responses=RESPONSES)


async def _load_client(
    request: Request, session: Session, versions: TheVersions, client_id: Annotated[UUID, Path()]
) -> OAuthClientRow:
    caller: Caller = request.scope["state"]["caller"]
    client = await service.find(session, caller, client_id, lock=request.method not in READ_METHODS)
    versions.about(client, "client_id")
    return client


Sort = Literal["name", "-name", "last_used", "-last_used", "created_at", "-created_at"]
LoadedClient = Annotated[OAuthClientRow, Depends(_load_client)]
_NO_ORGANIZATION: Final[dict[int | str, dict[str, Any]]] = {
    404: {"description": "There is no such organization, or you may not see it."}
}
#: 409 has two forms: a conflict of `If-Match` has no code, and `too_many_secrets` has one.
_TOO_MANY_SECRETS: Final[dict[int | str, dict[str, Any]]] = {
    409: {
        "description": "Three earlier secrets are still accepted (`too_many_secrets`).",
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/DetailError"},
                        {"$ref": "#/components/schemas/CodedError"},
                    ]
                }
            }
        },
    }
}


@router.post(BASE, status_code=201, response_model=OAuthClientCreated, responses=_NO_ORGANIZATION)
async def create_oauth_client(caller: ClientAdmin, body: NewOAuthClient, change: Changing) -> OAuthClientCreated:
    """Creates a client. The response contains its secret, which is shown only once."""
    return await service.create(change, caller, body)


@router.get(BASE, response_model=list[OAuthClient] | OAuthClientPage, responses=_NO_ORGANIZATION)
async def list_oauth_clients(
    caller: ClientReader,
    window: variants.ListWindow,
    session: Session,
    *,
    enabled: Annotated[
        bool | None, Query(description="`true`: only enabled clients. `false`: only disabled clients.")
    ] = None,
    tenant_id: Annotated[UUID | None, Query(description="Your own organization; operators can name any.")] = None,
    search: Annotated[str | None, search_parameter("Part of the name or of the client's id.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> object:
    """Returns your organization's clients, by default newest first. Operators see the platform-wide clients too.

    The response is an array with `limit` and `offset` (variant A), or a page with `page` and `page_size` (variant B).
    """
    filtered_tenant_id = await service.tenant_filter(session, caller, tenant_id)
    return await variants.list_response(
        session,
        table.list_query(caller, tenant_id=filtered_tenant_id, enabled=enabled, search=search, sort=sort),
        window,
    )


@router.get(f"{BASE}{{client_id}}", response_model=OAuthClient)
async def get_oauth_client(caller: ClientReader, client: LoadedClient) -> object:
    """Returns one client, without its secret: only the secret's digest is stored."""
    return client


@router.put(f"{BASE}{{client_id}}", response_model=OAuthClient)
async def replace_oauth_client(
    caller: ClientAdmin, client: LoadedClient, body: OAuthClientUpdate, change: Changing
) -> object:
    """Changes the fields that are sent (variant A)."""
    return await service.update(change, caller, client, body)


@router.patch(f"{BASE}{{client_id}}", response_model=OAuthClient)
async def update_oauth_client(
    caller: ClientAdmin, client: LoadedClient, body: OAuthClientUpdate, change: Changing
) -> object:
    """Changes the fields that are sent (variant B). A disabled client and its tokens are refused at once."""
    return await service.update(change, caller, client, body)


@router.delete(f"{BASE}{{client_id}}", status_code=204)
async def delete_oauth_client(caller: ClientAdmin, client: LoadedClient, change: Changing, host: TheHost) -> None:
    """Deletes a client permanently. Its tokens are refused at once, unless OAUTH_DELETE_REVOKES_TOKENS is false."""
    await service.delete(change, client, revoke_tokens=host.settings.oauth_delete_revokes_tokens)


@router.post(
    f"{BASE}{{client_id}}/rotate-secret",
    response_model=RotatedSecret,
    responses=_TOO_MANY_SECRETS,
)
async def rotate_oauth_client_secret(
    caller: ClientAdmin,
    client: LoadedClient,
    change: Changing,
    host: TheHost,
    body: SecretRotation | None = None,
) -> RotatedSecret:
    """Returns a new secret, which is shown only once. The previous secret stays valid for OAUTH_SECRET_GRACE_SECONDS,
    or for the time in the body. Secrets before it stay valid until the time that was set when they were replaced. At
    most three earlier secrets are valid at the same time."""
    requested = None if body is None else body.grace_period_seconds
    grace_seconds = host.settings.oauth_secret_grace_seconds if requested is None else requested
    shorten = requested is not None
    return await service.rotate_secret(change, caller, client, grace_seconds=grace_seconds, shorten=shorten)
