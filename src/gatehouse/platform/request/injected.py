"""Dependencies of routes: a session of the caller's tenant, a change, and the row that the path names."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Annotated, Final, get_args

from fastapi import Depends, Request
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.administration.etags import TheVersions, checks_if_match
from gatehouse.administration.injected import RequestTransactions, row_loader
from gatehouse.detection.models import TierName
from gatehouse.detection.service.client import DetectionClient
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.live.nodes import Propagation, wait_until_confirmed
from gatehouse.platform.request.ports import Host, TheHost

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


@checks_if_match
async def _change(
    request: Request, session: Session, transactions: InSplitTransactions, host: TheHost, versions: TheVersions
) -> AsyncIterator[Change]:
    """Yield a change. It is committed after the route has returned and before its response is sent. If the route raised
    an exception, the change is rolled back."""
    async with transactions.changing_row(session, versions) as change:
        yield change
        missing = await _load_models(change, host.detectors)
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


#: `loaded(row_class, parameter, not_found_error)` returns a dependency that loads the row that the path names.
loaded: Final = partial(row_loader, _tenant_session)
