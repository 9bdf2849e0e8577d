"""Creates, changes, deletes and tries out content filters."""

from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.ports import Ports
from gatehouse.engine.stages.calls import content_filters
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.content_filters import config
from gatehouse.platform.governance.content_filters.schemas import (
    ContentFilter,
    ContentFilterUpdate,
    FilterTrial,
    FilterTried,
    NewContentFilter,
    TriedFilter,
    TriedInstruction,
)
from gatehouse.platform.governance.content_filters.table import (
    ContentFilterRow,
    count_filters,
    count_keywords,
    lock_group,
)
from gatehouse.platform.request.injected import SplitTransactions

#: Maximum number of filters of an organization.
MAX_FILTERS: Final = 1_000


class ContentFilterNotFound(NotFound):
    message = "Content filter not found"


class TooManyFilters(Conflict):
    code = "too_many_filters"
    message = "The organization has the maximum number of content filters or of keywords in them. Remove some first."


class BadScope(Unprocessable):
    """`scope` and `group_id` contradict each other, or the group does not exist."""

    def __init__(self, fault: str) -> None:
        super().__init__(faults=[FieldFault("group_id", fault)])


async def create(change: Change, new: NewContentFilter) -> ContentFilterRow:
    """Add a filter. Raises `TooManyFilters`, or `Unprocessable` if the configuration or the scope is invalid."""
    filter_config = config.read(new.filter_type, new.config)
    await _check_scope(change.session, new.scope, new.group_id)
    session = change.session
    await require_room(session, ScopedLock.CONTENT_FILTERS, count_filters, limit=MAX_FILTERS, full=TooManyFilters)
    _check_keyword_count(await count_keywords(session), filter_config)
    now = utc_now()
    values = {**new.model_dump(), "config": filter_config.model_dump(exclude_unset=True)}
    row = ContentFilterRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    _record(change, "content_filter.created", row)
    return row


async def update(change: Change, row: ContentFilterRow, body: ContentFilterUpdate) -> ContentFilterRow:
    """Change a filter. The merged filter is validated as a whole, because a `config` is valid for one type only. Raises
    the same errors as `create`."""
    changes = body.sent()
    if changes.get("scope") == "org":
        changes.setdefault("group_id", None)
    merged: dict[str, Any] = {name: getattr(row, name) for name in NewContentFilter.model_fields} | changes
    filter_config = config.read(merged["filter_type"], merged["config"])
    await _check_scope(change.session, merged["scope"], merged["group_id"])
    await acquire_scoped(change.session, ScopedLock.CONTENT_FILTERS, str(change.tenant_id))
    keywords = await count_keywords(change.session)
    _check_keyword_count(keywords - len(row.config.get("keywords", ())), filter_config)
    row.assign({**merged, "config": filter_config.model_dump(exclude_unset=True)})
    _record(change, "content_filter.updated", row, changed=sorted(changes))
    return row


async def delete(change: Change, row: ContentFilterRow) -> None:
    await change.session.delete(row)
    _record(change, "content_filter.deleted", row)


async def try_out(transactions: SplitTransactions, ports: Ports, trial: FilterTrial) -> FilterTried:
    """Return the effect of the active filters on a text. Raises `BadScope` if the group does not exist."""
    if trial.group_id is not None:
        async with transactions.reading() as session:
            await _check_scope(session, "group", trial.group_id)
    filter_set = (await ports.policies.current(transactions.tenant_id)).filters
    filters = filter_set.of(() if trial.group_id is None else (trial.group_id,))
    blocking, failed, reason = await content_filters.evaluate(filter_set, filters, {"text": trial.text}, ports)
    return FilterTried(
        blocked=blocking is not None,
        blocked_by=None if blocking is None else TriedFilter.model_validate(blocking),
        instructions=[TriedInstruction.model_validate(rule) for rule in filters if rule.instruction],
        filters_evaluated=len(filters),
        failed=[TriedFilter.model_validate(rule) for rule in failed],
        failure=reason,
    )


async def _check_scope(session: AsyncSession, scope: str, group_id: UUID | None) -> None:
    """Check that scope and group agree. Raises `BadScope`."""
    if scope == "org":
        if group_id is not None:
            raise BadScope("belongs to the scope 'group'")
        return
    if group_id is None:
        raise BadScope("is required for the scope 'group'")
    if not await lock_group(session, group_id):
        raise BadScope("is not a group of this organization")


def _check_keyword_count(other_keywords: int, filter_config: config.Config) -> None:
    """Check the limit of keywords. Raises `TooManyFilters`."""
    if not isinstance(filter_config, config.KeywordConfig):
        return
    if other_keywords + len(filter_config.keywords) > config.MAX_KEYWORDS:
        raise TooManyFilters


def _record(change: Change, action: str, row: ContentFilterRow, **more: Any) -> None:
    """Record and publish a change. The event does not contain `config`, because readers of the audit log need not see
    the blocked keywords."""
    details = ContentFilter.model_validate(row).model_dump(
        include={"name", "filter_type", "scope", "enabled", "priority"}
    )
    group = None if row.group_id is None else str(row.group_id)
    change.record(action, "content_filter", row.id, **details, group_id=group, **more)
    change.touch("policy", change.tenant_id, urgent=True)
