"""Creates, changes, deletes, exports and imports compliance bundles, and moves them between their states."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadRequest, Conflict, NotFound
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.compliance_bundles.schemas import (
    EXPORT_VERSION,
    MAX_BUNDLES,
    BundleUpdate,
    ExportRecord,
    ImportedBundle,
    ImportSummary,
    NewBundle,
    State,
    content,
)
from gatehouse.platform.governance.compliance_bundles.table import (
    BundleRow,
    all_bundles,
    count_bundles,
    lock_by_name,
)

#: Fields whose change resets the acknowledgement.
_ACKNOWLEDGED_FIELDS: Final = frozenset({"regulatory_framework", "version", "seed_rule_mappings"})


class BundleNotFound(NotFound):
    message = "Compliance bundle not found"


class InvalidBundleId(BadRequest):
    message = "Invalid bundle_id format"


class BundleNameTaken(Conflict):
    code = "bundle_name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"A compliance bundle named {name!r} already exists.")


class TooManyBundles(Conflict):
    code = "too_many_bundles"
    message = "The organization has the maximum number of compliance bundles. Remove some first."


class DuplicateBundleName(Conflict):
    code = "bundle_name_twice"

    def __init__(self, name: str) -> None:
        super().__init__(f"The file contains two bundles named {name!r}.")


async def create(change: Change, new: NewBundle) -> BundleRow:
    """Add a bundle. Raises `BundleNameTaken`, `TooManyBundles`."""
    await _require_room(change.session, 1)
    row = _new_row(change, new)
    await _flush(change, row.name)
    _touch_policy(change)
    return row


async def update(change: Change, row: BundleRow, body: BundleUpdate) -> BundleRow:
    """Change a bundle. Raises `BundleNameTaken`."""
    _apply(change, row, body.sent())
    await _flush(change, row.name)
    _touch_policy(change)
    return row


async def delete(change: Change, row: BundleRow) -> None:
    await change.session.delete(row)
    change.record("compliance_bundle.deleted", "compliance_bundle", row.id, name=row.name)
    _touch_policy(change)


def move(change: Change, row: BundleRow, state: State) -> BundleRow:
    """Set the state to `active` or `archived`. If the bundle is in this state already, nothing is recorded."""
    if row.state != state:
        before = _event_state(row)
        row.state, row.updated_at = state, utc_now()
        _announce(change, row, before, _event_state(row))
        verb = "activated" if state == "active" else "archived"
        change.record(f"compliance_bundle.{verb}", "compliance_bundle", row.id, name=row.name)
        _touch_policy(change)
    return row


def acknowledge(change: Change, caller: Caller, row: BundleRow) -> BundleRow:
    """Acknowledge a bundle. An earlier acknowledgement is kept."""
    if row.acknowledged_at is None:
        before = _event_state(row)
        row.acknowledged_by, row.acknowledged_at = caller.actor_id, utc_now()
        change.record("compliance_bundle.acknowledged", "compliance_bundle", row.id, name=row.name, version=row.version)
        _announce(change, row, before, _event_state(row))
    return row


async def export(session: AsyncSession) -> list[ExportRecord]:
    return [to_export_record(row) for row in await all_bundles(session)]


def to_export_record(row: BundleRow) -> ExportRecord:
    columns = {name: getattr(row, name) for name in ExportRecord.model_fields if hasattr(row, name)}
    return ExportRecord.model_validate({**columns, "exported_at": utc_now(), "export_version": EXPORT_VERSION})


async def import_all(
    change: Change, records: Sequence[ImportedBundle], mode: Literal["skip", "replace"]
) -> ImportSummary:
    """Import all records, or none. Raises `DuplicateBundleName`, `TooManyBundles`, or `BundleNameTaken` if a concurrent
    transaction adds one of the names."""
    names = Counter(record.name for record in records)
    for name, count in names.items():
        if count > 1:
            raise DuplicateBundleName(name)
    existing = await lock_by_name(change.session, names)
    if len(existing) < len(names):
        await _require_room(change.session, len(names) - len(existing))
    outcomes: dict[str, list[str]] = {"created": [], "skipped": [], "replaced": []}
    archived_names: list[str] = []
    for record in records:
        row = existing.get(record.name)
        if row is None:
            row = _new_row(change, record, record.state or "active")
            outcomes["created"].append(record.name)
            await _flush(change, record.name)
        elif mode == "replace":
            _apply(change, row, content(record))
            if record.state is not None:
                move(change, row, record.state)
            outcomes["replaced"].append(record.name)
        else:
            outcomes["skipped"].append(record.name)
            continue
        if row.state == "archived":
            archived_names.append(record.name)
    if outcomes["created"] or outcomes["replaced"]:
        _touch_policy(change)
    counts = {outcome: len(bundle_names) for outcome, bundle_names in outcomes.items()}
    name_lists = {f"{outcome}_names": bundle_names for outcome, bundle_names in outcomes.items()}
    return ImportSummary(**counts, **name_lists, archived_names=archived_names)


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
    """Set the values that differ, announce changes of the state, and record the change."""
    changes = row.differing(values)
    if not changes:
        return
    if "enabled" in changes:
        before, after = ("disabled", "enabled") if changes["enabled"] else ("enabled", "disabled")
        _announce(change, row, before, after)
    if not _ACKNOWLEDGED_FIELDS.isdisjoint(changes):
        before = _event_state(row)
        row.acknowledged_by = row.acknowledged_at = None
        _announce(change, row, before, _event_state(row))
    row.assign(changes)
    change.record("compliance_bundle.updated", "compliance_bundle", row.id, **changes)


def _event_state(row: BundleRow) -> str:
    """Return the bundle's state in events: `active`, `acknowledged` or `archived`."""
    return "acknowledged" if row.state == "active" and row.acknowledged_at is not None else row.state


def _announce(change: Change, row: BundleRow, before: str, after: str) -> None:
    """Emit the event `bundle_state_change` if the states differ."""
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


def _touch_policy(change: Change) -> None:
    """Request a recompilation of the policy. The response waits until the new policy is active on every worker."""
    change.touch("policy", change.tenant_id, urgent=True)


async def _require_room(session: AsyncSession, new_bundles: int) -> None:
    """Require room for these new bundles. Raises `TooManyBundles`."""
    await require_room(
        session, ScopedLock.COMPLIANCE_BUNDLES, count_bundles,
        limit=MAX_BUNDLES, full=TooManyBundles, adding=new_bundles,
    )  # fmt: skip


async def _flush(change: Change, name: str) -> None:
    with unique(BundleNameTaken(name)):
        await change.session.flush()
