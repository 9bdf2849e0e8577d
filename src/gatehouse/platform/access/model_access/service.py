"""The rules of model access."""

from typing import Final

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.model_access import table
from gatehouse.platform.access.model_access.errors import RuleExists, RuleNotFound, TooManyRules, UnknownModel
from gatehouse.platform.access.model_access.schemas import NewRule
from gatehouse.platform.access.model_access.table import ModelAccessRow
from gatehouse.platform.change import Change

#: Rules an organization may have.
MOST: Final = 20_000


async def create(change: Change, group: GroupRow, new: NewRule) -> ModelAccessRow:
    """The group is locked, so nobody else adds the same rule meanwhile.

    Raises `UnknownModel`, `RuleExists`, `TooManyRules`.
    """
    provider, _, model_id = new.model_id.partition("/")
    if not await table.in_catalog(change.session, provider, model_id):
        raise UnknownModel
    if await table.find_rule(change.session, group.id, new.model_id) is not None:
        raise RuleExists
    await require_room(change.session, ScopedLock.MODEL_ACCESS, table.count_rules, limit=MOST, full=TooManyRules)
    row = ModelAccessRow(
        id=new_id(), tenant_id=change.tenant_id, group_id=group.id, created_at=utc_now(), **new.model_dump()
    )
    change.session.add(row)
    _say(change, "group.model_access_added", group, row)
    return row


async def delete(change: Change, group: GroupRow, model: str) -> None:
    """Raises `RuleNotFound`."""
    row = await table.find_rule(change.session, group.id, model)
    if row is None:
        raise RuleNotFound
    await change.session.delete(row)
    _say(change, "group.model_access_removed", group, row)


def _say(change: Change, action: str, group: GroupRow, row: ModelAccessRow) -> None:
    provider, _, model_id = row.model_id.partition("/")
    change.record(
        action, "group", group.id, target_provider=provider, target_model=model_id, name=group.name,
        access_type=row.access_type,
    )  # fmt: skip
    # The answer waits for every worker: what it says is then in force.
    change.touch("policy", change.tenant_id, urgent=True)
