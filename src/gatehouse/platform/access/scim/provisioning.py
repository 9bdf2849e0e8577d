"""The protocol's endpoints (reference 2, Endpoints, SCIM; RFC 7644). Each answer is `application/scim+json`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Request
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from gatehouse.foundation.identity import Caller
from gatehouse.foundation.lazily import Lazily, arrived
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.scim import described, reading
from gatehouse.platform.access.scim.errors import NotOffered, ResourceNotFound
from gatehouse.platform.access.scim.reading import PREFIX, Base, Page, Scim, Shown, View, Window
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.callers import RESPONSES, ScimClient
from gatehouse.platform.change import Change
from gatehouse.platform.requests import Changing, Session

if TYPE_CHECKING:
    from gatehouse.platform.access.scim import discovery, people, teams
else:
    # The library's models take forty modules and a second and a half: only workers that a directory calls have them.
    discovery, people, teams = (
        Lazily(f"gatehouse.platform.access.scim.{name}") for name in ("discovery", "people", "teams")
    )

router = APIRouter(prefix=PREFIX, tags=["SCIM"], responses=RESPONSES, default_response_class=Scim)

R = TypeVar("R", bound=TenantRow)


async def _directory(caller: ScimClient) -> Caller:
    await arrived(discovery, people, teams)
    return caller


Directory = Annotated[Caller, Depends(_directory)]
Id = Annotated[str, Path(alias="id", examples=["0192f3c4-5d6e-7f80-9123-456789abcdef"])]


def _uuid(given: str) -> UUID:
    """Whatever is no id of ours names nothing."""
    try:
        return UUID(given)
    except ValueError:
        raise ResourceNotFound from None


async def _user(session: Session, request: Request, wanted: Id) -> UserRow:
    query = select(UserRow).where(UserRow.id == _uuid(wanted), UserRow.kind == "user")
    return await _found(session, request, query)


async def _group(session: Session, request: Request, wanted: Id) -> GroupRow:
    return await _found(session, request, select(GroupRow).where(GroupRow.id == _uuid(wanted)))


async def _found(session: AsyncSession, request: Request, query: Select[R]) -> R:
    """Locked where the request can change it: two directories at once are one after the other."""
    if request.method != "GET":
        query = query.with_for_update()
    row = (await session.scalars(query)).one_or_none()
    if row is None:
        raise ResourceNotFound
    return row


LoadedUser = Annotated[UserRow, Depends(_user)]
LoadedGroup = Annotated[GroupRow, Depends(_group)]


# what is done alike with users and groups ----------------------------------------------------------------------------


class Family(Protocol[R]):
    """`people` and `teams`: the rules of one kind of resource."""

    @property
    def MAX_BYTES(self) -> int: ...  # noqa: N802 - the modules' constants
    @property
    def MAX_OPERATIONS(self) -> int: ...  # noqa: N802
    async def page(self, session: AsyncSession, window: Window, view: View) -> tuple[Sequence[R], int]: ...
    async def resources(self, session: AsyncSession, rows: Sequence[R], view: View) -> list[dict[str, Any]]: ...
    def location(self, row: R, base: str, /) -> str: ...
    async def create(self, change: Change, body: dict[str, Any]) -> R: ...
    async def replace(self, change: Change, row: R, body: dict[str, Any], /) -> None: ...
    async def patch(self, change: Change, row: R, operations: list[dict[str, Any]], /) -> None: ...


async def _listed(family: Family[R], session: AsyncSession, window: Window, view: View) -> Scim:
    rows, total = await family.page(session, window, view)
    return Scim.listing(await family.resources(session, rows, view), total=total, start_index=window.start_index)


async def _shown(family: Family[R], session: AsyncSession, row: R, view: View) -> Scim:
    (shown,) = await family.resources(session, [row], view)
    return Scim(shown)


async def _created(family: Family[R], request: Request, change: Change, view: View) -> Scim:
    row = await family.create(change, await reading.body(request, family.MAX_BYTES))
    (shown,) = await family.resources(change.session, [row], view)
    return Scim.created(shown, family.location(row, view.base))


async def _replaced(family: Family[R], row: R, request: Request, change: Change, view: View) -> Scim:
    await family.replace(change, row, await reading.body(request, family.MAX_BYTES))
    return await _shown(family, change.session, row, view)


async def _patched(family: Family[R], row: R, request: Request, change: Change) -> None:
    sent = reading.operations(await reading.body(request, family.MAX_BYTES), family.MAX_OPERATIONS)
    await family.patch(change, row, sent)


# users ---------------------------------------------------------------------------------------------------------------


@router.get("/Users", responses=described.USERS)
async def list_scim_users(caller: Directory, session: Session, view: Shown, window: Page) -> Scim:
    """The organization's users, oldest first. Filtered by `userName`, `emails`, `active`, `externalId` and `id`."""
    return await _listed(people, session, window, view)


@router.post("/Users", status_code=201, responses=described.USER_MADE, openapi_extra=described.USER_BODY)
async def create_scim_user(caller: Directory, request: Request, change: Changing, view: Shown) -> Scim:
    """Makes a user of the role `user`, without a password: they sign in at the identity provider."""
    return await _created(people, request, change, view)


@router.get("/Users/{id}", responses=described.USER)
async def read_scim_user(caller: Directory, user: LoadedUser, session: Session, view: Shown) -> Scim:
    """One user."""
    return await _shown(people, session, user, view)


@router.put("/Users/{id}", responses=described.USER, openapi_extra=described.USER_BODY)
async def replace_scim_user(
    caller: Directory, user: LoadedUser, request: Request, change: Changing, view: Shown
) -> Scim:
    """Puts the body in the place of all that a directory can say; only `active` stays where it is left out."""
    return await _replaced(people, user, request, change, view)


@router.patch("/Users/{id}", responses=described.USER, openapi_extra=described.USER_PATCH)
async def patch_scim_user(caller: Directory, user: LoadedUser, request: Request, change: Changing, view: Shown) -> Scim:
    """Changes a user, by all operations or by none. With `active` false, sessions end and API keys stop at once."""
    await _patched(people, user, request, change)
    return await _shown(people, change.session, user, view)


@router.delete("/Users/{id}", status_code=204, response_class=described.Nothing)
async def delete_scim_user(caller: Directory, user: LoadedUser, change: Changing) -> None:
    """Removes a user for good, with sessions and keys. Audit events stay, without saying who it was."""
    await people.delete(change, caller, user)


# groups --------------------------------------------------------------------------------------------------------------


@router.get("/Groups", responses=described.GROUPS)
async def list_scim_groups(caller: Directory, session: Session, view: Shown, window: Page) -> Scim:
    """The organization's groups, oldest first. Filtered by `displayName`, `externalId` and `id`. A page has fewer
    groups than asked for where their members would be too many for one; go on at `startIndex` + `itemsPerPage`."""
    return await _listed(teams, session, window, view)


@router.post("/Groups", status_code=201, responses=described.GROUP_MADE, openapi_extra=described.GROUP_BODY)
async def create_scim_group(caller: Directory, request: Request, change: Changing, view: Shown) -> Scim:
    """Makes a group, with its members."""
    return await _created(teams, request, change, view)


@router.get("/Groups/{id}", responses=described.GROUP)
async def read_scim_group(caller: Directory, group: LoadedGroup, session: Session, view: Shown) -> Scim:
    """One group, with all its members unless `excludedAttributes` names them."""
    return await _shown(teams, session, group, view)


@router.put("/Groups/{id}", responses=described.GROUP, openapi_extra=described.GROUP_BODY)
async def replace_scim_group(
    caller: Directory, group: LoadedGroup, request: Request, change: Changing, view: Shown
) -> Scim:
    """Puts name, `externalId` and members in the place of those that there are."""
    return await _replaced(teams, group, request, change, view)


@router.patch("/Groups/{id}", responses=described.GROUP_PATCHED, openapi_extra=described.GROUP_PATCH)
async def patch_scim_group(
    caller: Directory, group: LoadedGroup, request: Request, change: Changing, view: Shown
) -> Response:
    """Changes a group, by all operations or by none. A path may select members: `members[value eq "..."]`. Of more than
    1,000 members the answer is 204, unless `attributes` or `excludedAttributes` says what to show."""
    await _patched(teams, group, request, change)
    if not view.asked and await teams.large(change.session, group):
        return described.Nothing(status_code=204)
    return await _shown(teams, change.session, group, view)


@router.delete("/Groups/{id}", status_code=204, response_class=described.Nothing)
async def delete_scim_group(caller: Directory, group: LoadedGroup, change: Changing) -> None:
    """Removes a group with its DLP overrides and model access rules. The users stay."""
    await teams.delete(change, caller, group)


# discovery -----------------------------------------------------------------------------------------------------------


@router.get("/ServiceProviderConfig", responses=described.ONE)
async def read_service_provider_config(caller: Directory, base: Base) -> Scim:
    """What this service can do."""
    return Scim(discovery.service_provider_config(base))


@router.get("/Schemas", responses=described.MANY)
async def list_scim_schemas(caller: Directory, base: Base) -> Scim:
    """The attributes of users and groups."""
    found = discovery.schemas(base)
    return Scim.listing(found, total=len(found))


@router.get("/Schemas/{id}", responses=described.ONE)
async def read_scim_schema(caller: Directory, wanted: Id, base: Base) -> Scim:
    """One of them, by its URN."""
    return Scim(_named(discovery.schemas(base), wanted))


@router.get("/ResourceTypes", responses=described.MANY)
async def list_resource_types(caller: Directory, base: Base) -> Scim:
    """What there is: users and groups."""
    found = discovery.resource_types(base)
    return Scim.listing(found, total=len(found))


@router.get("/ResourceTypes/{id}", responses=described.ONE)
async def read_resource_type(caller: Directory, wanted: Id, base: Base) -> Scim:
    """One of them, by its name."""
    return Scim(_named(discovery.resource_types(base), wanted))


def _named(documents: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for document in documents:
        if document["id"].lower() == wanted.lower():
            return document
    raise ResourceNotFound


@router.post("/.search", include_in_schema=False)
@router.post("/Users/.search", include_in_schema=False)
@router.post("/Groups/.search", include_in_schema=False)
@router.post("/Bulk", include_in_schema=False)
@router.get("/Me", include_in_schema=False)
async def not_offered(caller: Directory) -> Scim:
    raise NotOffered
