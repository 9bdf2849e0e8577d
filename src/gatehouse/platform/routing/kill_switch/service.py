"""Engages and releases kill switches, and reports which workers have confirmed the changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.http.lists import OptionalWindow
from gatehouse.foundation.identity import Caller
from gatehouse.platform.changes.change import DEFAULT_TENANT, Change
from gatehouse.platform.live.nodes import Propagation, live_nodes
from gatehouse.platform.request.injected import commit
from gatehouse.platform.request.ports import Host
from gatehouse.platform.routing.kill_switch import table
from gatehouse.platform.routing.kill_switch.schemas import (
    ConnectedOutpost,
    ModelState,
    OutpostPropagation,
    PropagationReport,
    PropagationStatus,
    ProviderSummary,
    Reason,
    RecentChange,
    SwitchedModel,
    SwitchedProvider,
    Worker,
)
from gatehouse.platform.routing.kill_switch.table import State


class SwitchedModelNotFound(NotFound):
    message = "Model config not found"


class SwitchedProviderNotFound(NotFound):
    message = "Provider not found"


class ProviderSwitchedOff(Conflict):
    code = "provider_kill_switched"

    @classmethod
    def of(cls, provider: str) -> "ProviderSwitchedOff":
        return cls(
            f"The provider {provider} is switched off as a whole, so its models stay off. Release it:"
            f" POST /api/v1/admin/kill-switch/providers/{provider}/enable"
        )


async def summaries(
    session: AsyncSession, window: OptionalWindow, *, search: str | None, stopped: bool | None
) -> tuple[list[ProviderSummary], int]:
    """Return a page of the models by provider, and the number of all matching models. Providers without models, and
    removed providers that still have models or a switch, are included. The counts of a provider include models that do
    not match."""
    rows, total = await table.rows(session, window, search=search, stopped=stopped)
    by_provider = {
        provider: [row for row in models if row.id is not None]
        for provider, models in groupby(rows, key=lambda row: str(row.provider))
    }
    switches = await table.provider_switches(session)
    counts = await table.counts(session, list(by_provider))
    return [
        _summary(provider, models, switches, counts.get(provider, (0, 0))) for provider, models in by_provider.items()
    ], total


async def model(session: AsyncSession, model_config_id: UUID) -> ModelState:
    """Return a model's state. Raises `SwitchedModelNotFound`."""
    state = await table.state(session, model_config_id)
    if state is None:
        raise SwitchedModelNotFound
    return ModelState.model_validate(state)


async def switch_model(change: Change, host: Host, model_config_id: UUID, reason: Reason | None) -> SwitchedModel:
    """Switch a model off, or on if `reason` is None. Waits at most two seconds for the confirmations of all live
    workers. Raises `SwitchedModelNotFound`, and `ProviderSwitchedOff` if the model would stay off."""
    ids = await table.lock_model(change.session, model_config_id)
    if not ids:
        raise SwitchedModelNotFound
    if reason is None:
        before = await table.state(change.session, model_config_id)
        if before is not None and before.provider in await table.provider_switches(change.session):
            raise ProviderSwitchedOff.of(before.provider)
    (state,) = await _switch(change, ids, reason)
    shown = ModelState.model_validate(state)
    return SwitchedModel(**dict(shown), propagation=await _commit(change, host))


async def switch_provider(change: Change, host: Host, provider: str, reason: Reason | None) -> SwitchedProvider:
    """Switch a provider off, or on if `reason` is None. The switch applies to all models of the provider, including
    models that are added while it is off. Waits at most two seconds for the confirmations of all live workers. Raises
    `SwitchedProviderNotFound`."""
    ids = await table.lock_models_of(change.session, provider)
    if not ids and provider not in await table.provider_ids(change.session):
        raise SwitchedProviderNotFound
    change.record(
        _action(reason),
        "provider",
        provider,
        target_provider=provider,
        target_model="*",
        reason=reason,
        models=len(ids),
    )
    await table.switch_provider(change.session, change.tenant_id, provider, reason)
    change.touch("provider_switch", f"{change.tenant_id}/{provider}", urgent=True)
    states = await _switch(change, ids, reason)
    counts = len(states), sum(state.kill_switch_active for state in states)
    shown = _summary(provider, states, await table.provider_switches(change.session), counts)
    return SwitchedProvider(**dict(shown), propagation=await _commit(change, host))


async def report(session: AsyncSession, host: Host, caller: Caller, limit: int) -> PropagationReport:
    """Return the organization's last changes that revoked or restored a right, with the workers and outposts that have
    confirmed them."""
    changes = await table.recent_changes(session, caller.tenant_id or DEFAULT_TENANT, limit)
    nodes = await live_nodes(host.database)
    outposts = await table.outposts(session)
    confirmations = await table.confirmations(session, [row.revision for row in changes]) if outposts else {}
    shown = []
    for row in changes:
        pending = [node.name for node in nodes if node.revision < row.revision]
        propagation = {"confirmed": len(nodes) - len(pending), "total": len(nodes), "pending": pending}
        reached = [
            _outpost_propagation(row.at, outpost_id, at) for outpost_id, at in confirmations.get(row.revision, ())
        ]
        shown.append(RecentChange.model_validate({**row._mapping, **propagation, "outposts": reached}))
    return PropagationReport(
        nodes=[Worker.model_validate(node) for node in nodes],
        outposts=[ConnectedOutpost.model_validate(outpost) for outpost in outposts],
        changes=shown,
    )


def _outpost_propagation(changed_at: datetime, outpost_id: UUID, confirmed_at: datetime | None) -> OutpostPropagation:
    elapsed_ms = None
    if confirmed_at is not None:
        elapsed_ms = round(max(0.0, (confirmed_at - changed_at).total_seconds()) * 1000, 1)
    return OutpostPropagation(outpost_id=outpost_id, confirmed_at=confirmed_at, elapsed_ms=elapsed_ms)


async def _switch(change: Change, ids: list[UUID], reason: Reason | None) -> list[State]:
    if reason is None:
        states = await table.switch_on(change.session, ids)
    else:
        states = await table.switch_off(change.session, ids, reason)
    for state in sorted(states, key=lambda state: str(state.model_id)):
        change.record(
            _action(reason), "model_config", state.id,
            target_provider=state.provider, target_model=state.model_id, reason=reason,
        )  # fmt: skip
        change.touch("switch", state.id, urgent=True)
    return states


async def _commit(change: Change, host: Host) -> PropagationStatus:
    """Commit the change, and return its propagation for the response."""
    propagation = await commit(change, host)
    return PropagationStatus.model_validate(
        propagation or Propagation(confirmed=0, total=0, pending=[], elapsed_ms=0.0)
    )


def _summary(
    provider: str, models: Sequence[State], switches: Mapping[str, Any], counts: tuple[int, int]
) -> ProviderSummary:
    """Return the response about a provider with some of its models. `counts` are the number of all its models, and the
    number of those that a switch stops."""
    total, switched_off = counts
    return ProviderSummary(
        provider=provider,
        total_models=total,
        kill_switch_disabled_count=switched_off,
        kill_switch_active=switched_off > 0 or provider in switches,
        provider_disabled_at=switches[provider].disabled_at if provider in switches else None,
        provider_disabled_reason=switches[provider].reason if provider in switches else None,
        models=sorted((ModelState.model_validate(model) for model in models), key=lambda model: model.model_id),
    )


def _action(reason: Reason | None) -> str:
    return "kill_switch_enable" if reason is None else "kill_switch_disable"
