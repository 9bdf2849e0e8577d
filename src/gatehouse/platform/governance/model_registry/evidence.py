"""Collects the evidence for the risk review of a model: history of its entry, decisions, usage and incidents."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.stages.candidates.registry import objected
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.platform.changes.chain.table import AuditEventRow, AuditHead
from gatehouse.platform.governance.approvals.table import ApprovalRow
from gatehouse.platform.governance.model_registry import policy_records, service, usage
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
from gatehouse.platform.governance.model_registry.usage import ModelName
from gatehouse.platform.organization.system_config import table as system_config
from gatehouse.platform.records.hot import visible_since

T = TypeVar("T")

#: Maximum number of items of each list. The newest items are kept.
MAX_ITEMS: Final = 1_000

_HISTORY: Final = tuple(f"registered_model.{verb}" for verb in ("created", "updated", "deleted"))
_SWITCHED_OFF: Final = "kill_switch_disable"
_SWITCHES: Final = (_SWITCHED_OFF, "kill_switch_enable")


async def evidence(session: AsyncSession, row: RegisteredModelRow, variant: Variant) -> Evidence:
    name = row.provider, row.model_id
    # All lists end at this head of the audit chain, so that they do not contain events that are written meanwhile.
    head = (await session.scalars(select(AuditHead).where(AuditHead.tenant_id == session.info["tenant_id"]))).one()
    since = await visible_since(session)
    history = await _events(session, head, since, _HISTORY, name)
    switches = await _events(session, head, since, _SWITCHES, name, (row.provider, "*"))
    approvals = await _approvals(session, name)
    months = [_month(month) for month in await usage.by_month(session, name)]
    mode = policy_records.enforcement(await system_config.value(session, "registry_enforcement"))
    objection = None if mode == "off" else objected(row.validation_status)
    lists: tuple[Sequence[Any], ...] = (history, switches, approvals)
    return Evidence(
        generated_at=utc_now(),
        model=(await service.with_usage(session, [row], variant))[0],
        next_statuses=service.next_statuses(row),
        enforcement=Enforcement(mode=mode, objection=objection.code if objection else None),
        chain=ChainHead.model_validate(head),
        history=_oldest_first(EvidenceEvent.model_validate(event) for event in history),
        validation=_oldest_first(_transition(event) for event in history if "new_status" in event.details),
        kill_switches=_oldest_first(EvidenceEvent.model_validate(event) for event in switches),
        approvals=_oldest_first(_approval_request(approval) for approval in approvals),
        usage=months,
        incidents=Incidents(
            errors=sum(month.errors for month in months),
            dlp_blocks=sum(month.blocked for month in months),
            registry_flags=sum(month.flagged for month in months),
            kill_switches=sum(
                event.action == _SWITCHED_OFF and event.target_model == row.model_id for event in switches[:MAX_ITEMS]
            ),
        ),
        events_since=since,
        complete=all(len(items) <= MAX_ITEMS for items in lists) and (since is None or row.created_at >= since),
    )


async def _events(
    session: AsyncSession, head: AuditHead, since: datetime | None, actions: Sequence[str], *names: ModelName
) -> Sequence[AuditEventRow]:
    """Return audit events, newest first. They are selected by the model's name and not by the entry's id, so that a
    model that was removed and registered again has one history."""
    query = (
        select(AuditEventRow)
        .where(
            AuditEventRow.tenant_id == head.tenant_id,
            AuditEventRow.sequence <= head.sequence,
            AuditEventRow.action.in_(actions),
            tuple_(AuditEventRow.target_provider, AuditEventRow.target_model).in_(names),
        )
        .order_by(AuditEventRow.sequence.desc())
        .limit(MAX_ITEMS + 1)
    )
    if since is not None:
        query = query.where(AuditEventRow.timestamp >= since)
    return (await session.scalars(query)).all()


async def _approvals(session: AsyncSession, name: ModelName) -> Sequence[ApprovalRow]:
    """Return the requests that waited for approval and named the model, with or without its provider, newest first."""
    query = (
        select(ApprovalRow)
        .where(ApprovalRow.model.in_([f"{name[0]}/{name[1]}", name[1]]))
        .order_by(ApprovalRow.created_at.desc(), ApprovalRow.id.desc())
        .limit(MAX_ITEMS + 1)
    )
    return (await session.scalars(query)).all()


def _oldest_first(items: Iterable[T]) -> list[T]:
    return list(items)[:MAX_ITEMS][::-1]


def _transition(event: AuditEventRow) -> Move:
    return Move.model_validate(
        {
            **{name: event.details[name] for name in ("old_status", "new_status")},
            **{name: getattr(event, name) for name in ("timestamp", "actor_id", "sequence")},
        }
    )


def _approval_request(approval: ApprovalRow) -> HeldRequest:
    columns = {name: getattr(approval, name) for name in HeldRequest.model_fields if name != "requested_model"}
    return HeldRequest.model_validate({**columns, "requested_model": approval.model})


def _month(row: Any) -> MonthOfUse:
    return MonthOfUse.model_validate({**row._mapping, "month": f"{row.month:%Y-%m}"})
