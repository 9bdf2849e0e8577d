"""What a reviewer of model risk asks for, of one model: what was done to its entry and by whom, who decided about it,
how it was used, and what went wrong."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.stages.registry import objected
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.platform.chain.table import AuditEventRow, AuditHead
from gatehouse.platform.governance.approvals.table import ApprovalRow
from gatehouse.platform.governance.model_registry import bundle, figures, service
from gatehouse.platform.governance.model_registry.figures import Name
from gatehouse.platform.governance.model_registry.schemas import (
    ChainHead,
    Enforcement,
    Evidence,
    EvidenceEvent,
    HeldRequest,
    Incidents,
    MonthOfUse,
    Move,
)
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow
from gatehouse.platform.organization.system_config import table as system_config
from gatehouse.platform.records.hot import shown_since

T = TypeVar("T")

#: of a list, the newest
MOST: Final = 1_000

_HISTORY: Final = tuple(f"registered_model.{verb}" for verb in ("created", "updated", "deleted"))
_OFF: Final = "kill_switch_disable"
_SWITCHES: Final = (_OFF, "kill_switch_enable")


async def evidence(session: AsyncSession, row: RegisteredModelRow, variant: Variant) -> Evidence:
    name = row.provider, row.model_id
    # One moment for all of it: what is written meanwhile is behind the head that is told.
    head = (await session.scalars(select(AuditHead).where(AuditHead.tenant_id == session.info["tenant_id"]))).one()
    since = await shown_since(session)
    history = await _events(session, head, since, _HISTORY, name)
    switches = await _events(session, head, since, _SWITCHES, name, (row.provider, "*"))
    held = await _approvals(session, name)
    months = [_month(month) for month in await figures.by_month(session, name)]
    mode = bundle.enforcement(await system_config.value(session, "registry_enforcement"))
    objection = None if mode == "off" else objected(row.validation_status)
    lists: tuple[Sequence[Any], ...] = (history, switches, held)
    return Evidence(
        generated_at=utc_now(),
        model=(await service.shown(session, [row], variant))[0],
        enforcement=Enforcement(mode=mode, objection=objection.code if objection else None),
        chain=ChainHead.model_validate(head),
        history=_oldest_first(EvidenceEvent.model_validate(event) for event in history),
        validation=_oldest_first(_move(event) for event in history if "new_status" in event.details),
        kill_switches=_oldest_first(EvidenceEvent.model_validate(event) for event in switches),
        approvals=_oldest_first(_held(approval) for approval in held),
        usage=months,
        incidents=Incidents(
            errors=sum(month.errors for month in months),
            dlp_blocks=sum(month.blocked for month in months),
            registry_flags=sum(month.flagged for month in months),
            kill_switches=sum(event.action == _OFF and event.target_model == row.model_id for event in switches[:MOST]),
        ),
        events_since=since,
        complete=all(len(found) <= MOST for found in lists) and (since is None or row.created_at >= since),
    )


async def _events(
    session: AsyncSession, head: AuditHead, since: datetime | None, actions: Sequence[str], *names: Name
) -> Sequence[AuditEventRow]:
    """By name, not by entry: a model that was removed and registered again has one history. Newest first."""
    query = (
        select(AuditEventRow)
        .where(
            AuditEventRow.tenant_id == head.tenant_id,
            AuditEventRow.sequence <= head.sequence,
            AuditEventRow.action.in_(actions),
            tuple_(AuditEventRow.target_provider, AuditEventRow.target_model).in_(names),
        )
        .order_by(AuditEventRow.sequence.desc())
        .limit(MOST + 1)
    )
    if since is not None:
        query = query.where(AuditEventRow.timestamp >= since)
    return (await session.scalars(query)).all()


async def _approvals(session: AsyncSession, name: Name) -> Sequence[ApprovalRow]:
    """Requests that named the model, with its provider or without. Newest first."""
    query = (
        select(ApprovalRow)
        .where(ApprovalRow.model.in_([f"{name[0]}/{name[1]}", name[1]]))
        .order_by(ApprovalRow.created_at.desc(), ApprovalRow.id.desc())
        .limit(MOST + 1)
    )
    return (await session.scalars(query)).all()


def _oldest_first(found: Iterable[T]) -> list[T]:
    return list(found)[:MOST][::-1]


def _move(event: AuditEventRow) -> Move:
    return Move.model_validate(
        {
            **{name: event.details[name] for name in ("old_status", "new_status")},
            **{name: getattr(event, name) for name in ("timestamp", "actor_id", "sequence")},
        }
    )


def _held(approval: ApprovalRow) -> HeldRequest:
    own = {name: getattr(approval, name) for name in HeldRequest.model_fields if name != "requested_model"}
    return HeldRequest.model_validate({**own, "requested_model": approval.model})


def _month(row: Any) -> MonthOfUse:
    return MonthOfUse.model_validate({**row._mapping, "month": f"{row.month:%Y-%m}"})
