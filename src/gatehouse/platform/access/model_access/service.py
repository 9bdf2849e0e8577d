"""Creates and deletes model access rules."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.access.groups.table import GroupRow
from gatehouse.platform.access.model_access import table
from gatehouse.platform.access.model_access.schemas import ModelRules, NewRule
from gatehouse.platform.access.model_access.table import ModelAccessRow
from gatehouse.platform.changes.change import Change

#: Maximum number of rules of an organization.
MAX_RULES: Final = 20_000


class RuleNotFound(NotFound):
    message = "The group has no rule for this model"


class RuleExists(Conflict):
    code = "rule_exists"
    message = "The group has a rule for this model already. Remove it first."


class TooManyAccessRules(Conflict):
    code = "too_many_rules"
    message = "The organization has the maximum number of model access rules. Remove some first."


class UnknownCatalogModel(Unprocessable):
    """The model is not in the catalog. A rule with a misspelled name would silently have no effect."""

    def __init__(self) -> None:
        message = (
            "is not in the catalog: write provider/model-id, that is `provider` and `model_id` of an entry of"
            " GET /api/admin/models/catalog with a slash between them"
        )
        super().__init__(faults=[FieldFault("model_id", message)])


async def create(change: Change, group: GroupRow, new: NewRule) -> ModelAccessRow:
    """Create a rule. The caller has locked the group, so that no concurrent request adds the same rule.

    Raises `UnknownCatalogModel`, `RuleExists`, `TooManyAccessRules`.
    """
    provider, _, model_id = new.model_id.partition("/")
    if not await table.in_catalog(change.session, provider, model_id):
        raise UnknownCatalogModel
    if await table.find_rule(change.session, group.id, new.model_id) is not None:
        raise RuleExists
    await require_room(
        change.session, ScopedLock.MODEL_ACCESS, table.count_rules, limit=MAX_RULES, full=TooManyAccessRules
    )
    row = ModelAccessRow(
        id=new_id(), tenant_id=change.tenant_id, group_id=group.id, created_at=utc_now(), **new.model_dump()
    )
    change.session.add(row)
    _record_and_touch(change, "group.model_access_added", group, row)
    return row


async def models_with_rules(
    session: AsyncSession, window: OffsetWindow, group_ids: Sequence[UUID], *, search: str, ruled: bool
) -> tuple[list[ModelRules], int]:
    """Return a page of models with the rules of these groups, and the number of all matching models."""
    models, total = await table.page_of_models(session, window, search=search, ruled=ruled)
    rules: dict[str, list[ModelAccessRow]] = defaultdict(list)
    for rule in await table.rules_of_models(session, [model["model_id"] for model in models], group_ids):
        rules[rule.model_id].append(rule)
    return [ModelRules.model_validate({**model, "rules": rules[model["model_id"]]}) for model in models], total


async def require_rule(session: AsyncSession, group: GroupRow, model: str) -> ModelAccessRow:
    """Return the group's rule for a model. Raises `RuleNotFound`."""
    row = await table.find_rule(session, group.id, model)
    if row is None:
        raise RuleNotFound
    return row


async def delete(change: Change, group: GroupRow, row: ModelAccessRow) -> None:
    """Delete a rule of the group."""
    await change.session.delete(row)
    _record_and_touch(change, "group.model_access_removed", group, row)


def _record_and_touch(change: Change, action: str, group: GroupRow, row: ModelAccessRow) -> None:
    provider, _, model_id = row.model_id.partition("/")
    change.record(
        action, "group", group.id, target_provider=provider, target_model=model_id, name=group.name,
        access_type=row.access_type,
    )  # fmt: skip
    # Urgent: the response waits until the change is active on every worker.
    change.touch("policy", change.tenant_id, urgent=True)
