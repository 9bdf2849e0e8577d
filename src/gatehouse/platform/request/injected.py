"""Dependencies of routes: a session of the caller's tenant, a change, and the row that the path names."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Final, TypeVar, get_args

from fastapi import Depends, Path, Request
from fastapi.dependencies.models import Dependant
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.changes import load_row
from gatehouse.administration.etags import READ_METHODS, TheVersions, has_version, loaders, without_version
from gatehouse.administration.injected import RequestTransactions
from gatehouse.detection.models import TierName
from gatehouse.detection.service.client import DetectionClient
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.bodies import PathId
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.storage.rows import Row
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.live.nodes import Propagation, wait_until_confirmed
from gatehouse.platform.request.ports import Host, TheHost

R = TypeVar("R", bound=Row)

#: Time limit for loading. It is less than `idle_in_transaction_session_timeout`, because the transaction of the change
#: stays open while models load.
_MODEL_TIMEOUT_SECONDS: Final = 10.0
#: Value of the header `X-Gateway-Warning` if a model is not loaded in time.
_MODEL_WARNING: Final = "The model of the {} tier is not loaded yet; until it is, requests fail as DLP_FAIL_MODE says."
_NEEDED_TIERS: Final = text(
    "SELECT EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'ner') AS ner,"
    " EXISTS (SELECT 1 FROM dlp_rules WHERE enabled AND detector_type = 'llm')"
    " OR EXISTS (SELECT 1 FROM content_filters WHERE enabled AND filter_type = 'topic_block') AS llm"
)


class TenantTransactions(RequestTransactions[Change]):
    """Transactions in a tenant. `caller` is None if the request is not authenticated yet, for example at sign-in."""

    def __init__(
        self,
        request: Request,
        host: TheHost,
        tenant_id: TenantId,
        caller: Caller | None = None,
        *,
        operator: bool = False,
    ) -> None:
        super().__init__(request)
        self.tenant_id = tenant_id
        self._caller = caller
        self._operator = operator
        self._host = host

    def reading(self) -> AbstractAsyncContextManager[AsyncSession]:
        return self._host.database.tenant(self.tenant_id, operator=self._operator)

    def new_change(self, session: AsyncSession) -> Change:
        return Change(session, self._caller, self.origin, tenant_id=self.tenant_id)

    async def commit(self, change: Change) -> None:
        await commit(change, self._host)


class SplitTransactions(TenantTransactions):
    """Transactions in the caller's tenant. The caller is already authorized, because routes declare it first."""

    def __init__(self, request: Request, host: TheHost) -> None:
        self.caller: Caller = request.scope["state"]["caller"]
        # A platform-wide client has no tenant, so it acts in the tenant of the operators.
        tenant_id = self.caller.tenant_id or DEFAULT_TENANT
        operator = self.caller.operator or self.caller.tenant_id is None
        super().__init__(request, host, tenant_id, self.caller, operator=operator)


async def _split_transactions(request: Request, host: TheHost) -> SplitTransactions:
    return SplitTransactions(request, host)


#: Separate transactions for a route that calls an external system between them.
InSplitTransactions = Annotated[SplitTransactions, Depends(_split_transactions)]


async def _tenant_session(transactions: InSplitTransactions) -> AsyncIterator[AsyncSession]:
    async with transactions.reading() as session:
        yield session


#: A session for reading: one transaction, rolled back at the end.
Session = Annotated[AsyncSession, Depends(_tenant_session, scope="function")]


async def _load_models(change: Change, detectors: DetectionClient) -> list[TierName]:
    """Load the detection models that the changed policy will need, so that no request is refused because a model is
    missing. Return the tiers that are not loaded after ten seconds. Call this before the commit, because it reads the
    policy in the transaction of the change."""
    if not change.touches("policy"):
        return []
    await change.session.flush()
    row = (await change.session.execute(_NEEDED_TIERS)).one()
    tiers: list[TierName] = [tier for tier in get_args(TierName) if getattr(row, tier)]
    for tier in tiers:
        detectors.need(tier)
    return await detectors.loaded(_MODEL_TIMEOUT_SECONDS, tiers)


async def _change(
    request: Request, session: Session, transactions: InSplitTransactions, host: TheHost, versions: TheVersions
) -> AsyncIterator[Change]:
    """Yield a change. It is committed after the route has returned and before its response is sent. If the route raised
    an exception, the change is rolled back."""
    change = transactions.new_change(session)
    # The version is checked here, and not where the row is loaded, because the right to see the row is checked between
    # the two.
    versions.require()
    yield change
    missing = await _load_models(change, host.detectors)
    await transactions.commit(change)
    versions.changed()
    if missing:
        request.scope["state"]["response_headers"]["X-Gateway-Warning"] = _MODEL_WARNING.format(" and ".join(missing))


def changing(
    request: Request, host: Host, tenant_id: TenantId, caller: Caller | None = None
) -> AbstractAsyncContextManager[Change]:
    """Yield a change in a tenant that no credential of the request names, for example at sign-in.

    The change is committed at the end of the block. So slow work, such as hashing a password, can be done before the
    block, when no connection is occupied. `caller` may be set on the change later, once the caller is identified.
    """
    return TenantTransactions(request, host, tenant_id, caller).changing()


async def commit(change: Change, host: TheHost) -> Propagation | None:
    """Commit, and after an urgent change wait at most two seconds until every live worker has confirmed it.

    Returns the propagation of an urgent change. A route that returns the propagation commits by itself; the later
    commit of `Changing` then does nothing.
    """
    await change.commit()
    if not change.urgent or change.revision is None:
        return None
    change.urgent = False
    return await wait_until_confirmed(host.database, change.revision)


#: A change in the same session. It is committed once.
Changing = Annotated[Change, Depends(_change, scope="function")]


def checks_version(dependant: Dependant) -> bool:
    """Return whether a route refuses a change if the version in `If-Match` is not that of its row."""
    with_version = [has_version(loader) for loader in loaders(dependant) if loader is not _change]
    return bool(with_version) and all(with_version) and _depends_on(dependant, _change)


def _depends_on(dependant: Dependant, call: Callable[..., Any]) -> bool:
    return dependant.call is call or any(_depends_on(dependency, call) for dependency in dependant.dependencies)


def loaded(
    row_class: type[R], parameter: str, not_found_error: type[NotFound], *, column: str = "id", part: str = ""
) -> Callable[..., Any]:
    """Return a dependency that loads the caller's row with the value of a path parameter in `column`. The dependency
    raises `not_found_error` if the row does not exist or belongs to another tenant.

    The row is locked if the request can change it, so that concurrent changes are serialized. A change with another
    version in `If-Match` is refused with 412. The response has the row's `ETag` if the path ends with the parameter, or
    with the parameter and `part`.
    """
    key_column = getattr(row_class, column)

    async def load(
        session: Session, request: Request, versions: TheVersions, row_id: Annotated[PathId, Path(alias=parameter)]
    ) -> Row:
        lock = request.method not in READ_METHODS
        record = await load_row(session, row_class, key_column, row_id, not_found_error, lock=lock)
        versions.about(record, parameter, part=part)
        return record

    return load if hasattr(row_class, "updated_at") else without_version(load)
