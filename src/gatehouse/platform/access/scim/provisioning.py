"""The protocol's endpoints (RFC 7644). Every response is `application/scim+json`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from gatehouse.foundation.identity import Caller
from gatehouse.foundation.lazy_import import LazyModule, import_in_thread
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.scim.errors import NotSupported, ResourceNotFound
from gatehouse.platform.access.scim.protocol import messages, openapi_bodies
from gatehouse.platform.access.scim.protocol.messages import (
    PREFIX,
    BaseUrl,
    ListWindow,
    RequestView,
    RequestWindow,
    ResourceView,
    ScimResponse,
)
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change
from gatehouse.platform.request.callers import RESPONSES, ScimClient
from gatehouse.platform.request.injected import Changing, Session

if TYPE_CHECKING:
    from gatehouse.platform.access.scim import people, teams
    from gatehouse.platform.access.scim.protocol import discovery
else:
    # Importing the library's models takes 1.5 s, so a worker imports them only when a directory calls it.
    discovery, people, teams = (
        LazyModule(f"gatehouse.platform.access.scim.{name}") for name in ("protocol.discovery", "people", "teams")
    )

router = APIRouter(prefix=PREFIX, tags=["SCIM"], responses=RESPONSES, default_response_class=ScimResponse)

R = TypeVar("R", bound=TenantRow)


async def _directory_client(caller: ScimClient) -> Caller:
    await import_in_thread(discovery, people, teams)
    return caller


Directory = Annotated[Caller, Depends(_directory_client)]
Id = Annotated[str, Path(alias="id", examples=["0192f3c4-5d6e-7f80-9123-456789abcdef"])]


def _uuid(resource_id: str) -> UUID:
    """Return the id. Raises `ResourceNotFound` if it is not a UUID."""
    try:
        return UUID(resource_id)
    except ValueError:
        raise ResourceNotFound from None


async def _load_user(session: Session, request: Request, resource_id: Id) -> UserRow:
    query = select(UserRow).where(UserRow.id == _uuid(resource_id), UserRow.kind == "user")
    return await _load_row(session, request, query)


async def _load_group(session: Session, request: Request, resource_id: Id) -> GroupRow:
    return await _load_row(session, request, select(GroupRow).where(GroupRow.id == _uuid(resource_id)))


async def _load_row(session: AsyncSession, request: Request, query: Select[R]) -> R:
    """Return the row, locked if the request can change it. Raises `ResourceNotFound`."""
    if request.method != "GET":
        query = query.with_for_update()
    row = (await session.scalars(query)).one_or_none()
    if row is None:
        raise ResourceNotFound
    return row


LoadedUser = Annotated[UserRow, Depends(_load_user)]
LoadedGroup = Annotated[GroupRow, Depends(_load_group)]


# shared by users and groups ------------------------------------------------------------------------------------------


class ResourceRules(Protocol[R]):
    """The operations on one type of resource: the modules `people` and `teams`."""

    @property
    def MAX_BYTES(self) -> int: ...  # noqa: N802 - the modules' constants
    @property
    def MAX_OPERATIONS(self) -> int: ...  # noqa: N802
    async def page(self, session: AsyncSession, window: ListWindow, view: ResourceView) -> tuple[Sequence[R], int]: ...
    async def resources(self, session: AsyncSession, rows: Sequence[R], view: ResourceView) -> list[dict[str, Any]]: ...
    def location(self, row: R, base: str, /) -> str: ...
    async def create(self, change: Change, body: dict[str, Any]) -> R: ...
    async def replace(self, change: Change, row: R, body: dict[str, Any], /) -> None: ...
    async def patch(self, change: Change, row: R, operations: list[dict[str, Any]], /) -> None: ...


async def _list_response(
    rules: ResourceRules[R], session: AsyncSession, window: ListWindow, view: ResourceView
) -> ScimResponse:
    rows, total = await rules.page(session, window, view)
    return ScimResponse.list_response(
        await rules.resources(session, rows, view), total=total, start_index=window.start_index
    )


async def _resource_response(
    rules: ResourceRules[R], session: AsyncSession, row: R, view: ResourceView
) -> ScimResponse:
    (resource,) = await rules.resources(session, [row], view)
    return ScimResponse(resource)


async def _create_response(
    rules: ResourceRules[R], request: Request, change: Change, view: ResourceView
) -> ScimResponse:
    row = await rules.create(change, await messages.read_json(request, rules.MAX_BYTES))
    (resource,) = await rules.resources(change.session, [row], view)
    return ScimResponse.created_response(resource, rules.location(row, view.base))


async def _replace_response(
    rules: ResourceRules[R], row: R, request: Request, change: Change, view: ResourceView
) -> ScimResponse:
    await rules.replace(change, row, await messages.read_json(request, rules.MAX_BYTES))
    return await _resource_response(rules, change.session, row, view)


async def _apply_patch(rules: ResourceRules[R], row: R, request: Request, change: Change) -> None:
    operations = messages.operations(await messages.read_json(request, rules.MAX_BYTES), rules.MAX_OPERATIONS)
    await rules.patch(change, row, operations)


# users ---------------------------------------------------------------------------------------------------------------


@router.get("/Users", responses=openapi_bodies.USER_LIST)
async def list_scim_users(
    caller: Directory, session: Session, view: RequestView, window: RequestWindow
) -> ScimResponse:
    """Returns the users, oldest first. Filters: `userName`, `emails`, `active`, `externalId` and `id`."""
    return await _list_response(people, session, window, view)


@router.post("/Users", status_code=201, responses=openapi_bodies.USER_CREATED, openapi_extra=openapi_bodies.USER_BODY)
async def create_scim_user(caller: Directory, request: Request, change: Changing, view: RequestView) -> ScimResponse:
    """Creates a user with the role `user` and without a password, who signs in at the identity provider."""
    return await _create_response(people, request, change, view)


@router.get("/Users/{id}", responses=openapi_bodies.USER)
async def read_scim_user(caller: Directory, user: LoadedUser, session: Session, view: RequestView) -> ScimResponse:
    """Returns one user."""
    return await _resource_response(people, session, user, view)


@router.put("/Users/{id}", responses=openapi_bodies.USER, openapi_extra=openapi_bodies.USER_BODY)
async def replace_scim_user(
    caller: Directory, user: LoadedUser, request: Request, change: Changing, view: RequestView
) -> ScimResponse:
    """Replaces all attributes that a directory can set. A missing `active` keeps its value."""
    return await _replace_response(people, user, request, change, view)


@router.patch("/Users/{id}", responses=openapi_bodies.USER, openapi_extra=openapi_bodies.USER_PATCH)
async def patch_scim_user(
    caller: Directory, user: LoadedUser, request: Request, change: Changing, view: RequestView
) -> ScimResponse:
    """Changes a user: all operations apply, or none. With `active` false, the user's sessions end and API keys are
    refused at once."""
    await _apply_patch(people, user, request, change)
    return await _resource_response(people, change.session, user, view)


@router.delete("/Users/{id}", status_code=204, response_class=openapi_bodies.NoContent)
async def delete_scim_user(caller: Directory, user: LoadedUser, change: Changing) -> None:
    """Deletes a user permanently, with sessions and keys. The user's audit events stay, without the user's identity."""
    await people.delete(change, caller, user)


# groups --------------------------------------------------------------------------------------------------------------


@router.get("/Groups", responses=openapi_bodies.GROUP_LIST)
async def list_scim_groups(
    caller: Directory, session: Session, view: RequestView, window: RequestWindow
) -> ScimResponse:
    """Returns the groups, oldest first. Filters: `displayName`, `externalId` and `id`. A page contains fewer groups
    than requested if the groups have too many members. Continue at `startIndex` + `itemsPerPage`."""
    return await _list_response(teams, session, window, view)


@router.post(
    "/Groups", status_code=201, responses=openapi_bodies.GROUP_CREATED, openapi_extra=openapi_bodies.GROUP_BODY
)
async def create_scim_group(caller: Directory, request: Request, change: Changing, view: RequestView) -> ScimResponse:
    """Creates a group with its members."""
    return await _create_response(teams, request, change, view)


@router.get("/Groups/{id}", responses=openapi_bodies.GROUP)
async def read_scim_group(caller: Directory, group: LoadedGroup, session: Session, view: RequestView) -> ScimResponse:
    """Returns one group, with all its members unless `excludedAttributes` names them."""
    return await _resource_response(teams, session, group, view)


@router.put("/Groups/{id}", responses=openapi_bodies.GROUP, openapi_extra=openapi_bodies.GROUP_BODY)
async def replace_scim_group(
    caller: Directory, group: LoadedGroup, request: Request, change: Changing, view: RequestView
) -> ScimResponse:
    """Replaces the group's name, `externalId` and members."""
    return await _replace_response(teams, group, request, change, view)


@router.patch("/Groups/{id}", responses=openapi_bodies.GROUP_PATCHED, openapi_extra=openapi_bodies.GROUP_PATCH)
async def patch_scim_group(
    caller: Directory, group: LoadedGroup, request: Request, change: Changing, view: RequestView
) -> Response:
    """Changes a group: all operations apply, or none. A path may select members: `members[value eq "..."]`. With more
    than 1,000 members the response is 204, unless `attributes` or `excludedAttributes` is sent."""
    await _apply_patch(teams, group, request, change)
    if not view.has_projection and await teams.is_large(change.session, group):
        return openapi_bodies.NoContent(status_code=204)
    return await _resource_response(teams, change.session, group, view)


@router.delete("/Groups/{id}", status_code=204, response_class=openapi_bodies.NoContent)
async def delete_scim_group(caller: Directory, group: LoadedGroup, change: Changing) -> None:
    """Deletes a group with its DLP overrides and model access rules. The users stay."""
    await teams.delete(change, caller, group)


# discovery -----------------------------------------------------------------------------------------------------------


@router.get("/ServiceProviderConfig", responses=openapi_bodies.DOCUMENT)
async def read_service_provider_config(caller: Directory, base: BaseUrl) -> ScimResponse:
    """Returns the capabilities of this service."""
    return ScimResponse(discovery.service_provider_config(base))


@router.get("/Schemas", responses=openapi_bodies.DOCUMENT_LIST)
async def list_scim_schemas(caller: Directory, base: BaseUrl) -> ScimResponse:
    """Returns the schemas of users and groups."""
    documents = discovery.schemas(base)
    return ScimResponse.list_response(documents, total=len(documents))


@router.get("/Schemas/{id}", responses=openapi_bodies.DOCUMENT)
async def read_scim_schema(caller: Directory, resource_id: Id, base: BaseUrl) -> ScimResponse:
    """Returns one schema by its URN."""
    return ScimResponse(_document_by_id(discovery.schemas(base), resource_id))


@router.get("/ResourceTypes", responses=openapi_bodies.DOCUMENT_LIST)
async def list_resource_types(caller: Directory, base: BaseUrl) -> ScimResponse:
    """Returns the resource types: users and groups."""
    documents = discovery.resource_types(base)
    return ScimResponse.list_response(documents, total=len(documents))


@router.get("/ResourceTypes/{id}", responses=openapi_bodies.DOCUMENT)
async def read_resource_type(caller: Directory, resource_id: Id, base: BaseUrl) -> ScimResponse:
    """Returns one resource type by its name."""
    return ScimResponse(_document_by_id(discovery.resource_types(base), resource_id))


def _document_by_id(documents: list[dict[str, Any]], resource_id: str) -> dict[str, Any]:
    for document in documents:
        if document["id"].lower() == resource_id.lower():
            return document
    raise ResourceNotFound


@router.post("/.search", include_in_schema=False)
@router.post("/Users/.search", include_in_schema=False)
@router.post("/Groups/.search", include_in_schema=False)
@router.post("/Bulk", include_in_schema=False)
@router.get("/Me", include_in_schema=False)
async def not_offered(caller: Directory) -> ScimResponse:
    raise NotSupported
