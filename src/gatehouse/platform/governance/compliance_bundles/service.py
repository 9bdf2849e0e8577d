"""The rules of compliance bundles."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.platform.change import Change
from gatehouse.platform.governance.compliance_bundles.errors import BundleNameTaken, NameTwice
from gatehouse.platform.governance.compliance_bundles.schemas import (
    EXPORT_VERSION,
    BundleUpdate,
    ExportRecord,
    ImportedBundle,
    ImportSummary,
    NewBundle,
    State,
    content,
)
from gatehouse.platform.governance.compliance_bundles.table import BundleRow, all_bundles, lock_by_name

#: What was acknowledged: when one of these changes, it has to be read again.
_ACKNOWLEDGED: Final = frozenset({"regulatory_framework", "version", "seed_rule_mappings"})


async def create(change: Change, new: NewBundle) -> BundleRow:
    """Raises `BundleNameTaken`."""
    row = _new_row(change, new)
    await _flush(change, row.name)
    _touch(change)
    return row


async def update(change: Change, row: BundleRow, body: BundleUpdate) -> BundleRow:
    """Raises `BundleNameTaken`."""
    _apply(change, row, body.sent())
    await _flush(change, row.name)
    _touch(change)
    return row


async def delete(change: Change, row: BundleRow) -> None:
    await change.session.delete(row)
    change.record("compliance_bundle.deleted", "compliance_bundle", row.id, name=row.name)
    _touch(change)


def move(change: Change, row: BundleRow, state: State) -> BundleRow:
    """To `active` or `archived`. Where it is there already, nothing happened."""
    if row.state != state:
        before = _stage(row)
        row.state, row.updated_at = state, utc_now()
        _announce(change, row, before, _stage(row))
        verb = "activated" if state == "active" else "archived"
        change.record(f"compliance_bundle.{verb}", "compliance_bundle", row.id, name=row.name)
        _touch(change)
    return row


def acknowledge(change: Change, caller: Caller, row: BundleRow) -> BundleRow:
    """The first to acknowledge a bundle as it is now stays the one who did."""
    if row.acknowledged_at is None:
        before = _stage(row)
        row.acknowledged_by, row.acknowledged_at = caller.actor_id, utc_now()
        change.record("compliance_bundle.acknowledged", "compliance_bundle", row.id, name=row.name, version=row.version)
        _announce(change, row, before, _stage(row))
    return row


async def export(session: AsyncSession) -> list[ExportRecord]:
    return [exported(row) for row in await all_bundles(session)]


def exported(row: BundleRow) -> ExportRecord:
    own = {name: getattr(row, name) for name in ExportRecord.model_fields if hasattr(row, name)}
    return ExportRecord.model_validate({**own, "exported_at": utc_now(), "export_version": EXPORT_VERSION})


async def import_all(
    change: Change, records: Sequence[ImportedBundle], mode: Literal["skip", "replace"]
) -> ImportSummary:
    """All of the file or nothing. Raises `NameTwice`; `BundleNameTaken` where somebody was faster."""
    names = Counter(record.name for record in records)
    for name, times in names.items():
        if times > 1:
            raise NameTwice(name)
    there = await lock_by_name(change.session, names)
    done: dict[str, list[str]] = {"created": [], "skipped": [], "replaced": []}
    archived: list[str] = []
    for record in records:
        row = there.get(record.name)
        if row is None:
            row = _new_row(change, record, record.state or "active")
            done["created"].append(record.name)
            await _flush(change, record.name)
        elif mode == "replace":
            _apply(change, row, content(record))
            if record.state is not None:
                move(change, row, record.state)
            done["replaced"].append(record.name)
        else:
            done["skipped"].append(record.name)
            continue
        if row.state == "archived":
            archived.append(record.name)
    if done["created"] or done["replaced"]:
        _touch(change)
    counts = {what: len(of) for what, of in done.items()}
    return ImportSummary(**counts, **{f"{what}_names": of for what, of in done.items()}, archived_names=archived)


def _new_row(change: Change, new: NewBundle, state: State = "active") -> BundleRow:
    now = utc_now()
    values = content(new)
    row = BundleRow(
        id=new_id(), tenant_id=change.tenant_id, state=state, acknowledged_by=None, acknowledged_at=None,
        created_at=now, updated_at=now, **values,
    )  # fmt: skip
    change.session.add(row)
    change.record("compliance_bundle.created", "compliance_bundle", row.id, **values, state=state)
    return row


def _apply(change: Change, row: BundleRow, values: Mapping[str, Any]) -> None:
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    if not changed:
        return
    if "enabled" in changed:
        moves = ("disabled", "enabled") if changed["enabled"] else ("enabled", "disabled")
        _announce(change, row, *moves)
    if not _ACKNOWLEDGED.isdisjoint(changed):
        before = _stage(row)
        row.acknowledged_by = row.acknowledged_at = None
        _announce(change, row, before, _stage(row))
    for name, value in changed.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    change.record("compliance_bundle.updated", "compliance_bundle", row.id, **changed)


def _stage(row: BundleRow) -> str:
    """The bundle's state as its events name it: `active`, `acknowledged` or `archived`."""
    return "acknowledged" if row.state == "active" and row.acknowledged_at is not None else row.state


def _announce(change: Change, row: BundleRow, before: str, after: str) -> None:
    """Announces `bundle_state_change`, unless the state is the same."""
    if before == after:
        return
    payload = {
        "bundle_id": row.id,
        "bundle_name": row.name,
        "previous_state": before,
        "new_state": after,
        "changed_by": change.caller.actor_id if change.caller else None,
        "changed_at": utc_now(),
    }
    change.announce("bundle_state_change", payload)


def _touch(change: Change) -> None:
    """What a bundle asks for is in force on every worker when the answer is there."""
    change.touch("policy", change.tenant_id, urgent=True)


async def _flush(change: Change, name: str) -> None:
    try:
        await change.session.flush()
    except IntegrityError:
        raise BundleNameTaken(name) from None
