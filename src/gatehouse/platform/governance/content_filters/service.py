"""The rules of content filters."""

from typing import Any, Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.ports import Ports
from gatehouse.engine.stages import content_filters
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped, require_room
from gatehouse.platform.change import Change
from gatehouse.platform.governance.content_filters import config
from gatehouse.platform.governance.content_filters.errors import BadScope, TooManyFilters
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
from gatehouse.platform.requests import Apart

#: Filters an organization may have.
MOST: Final = 1_000


async def create(change: Change, new: NewContentFilter) -> ContentFilterRow:
    """Raises `TooManyFilters`, and `Unprocessable` where configuration or scope are not good; then nothing changes."""
    known = config.read(new.filter_type, new.config)
    await _judge_scope(change.session, new.scope, new.group_id)
    session = change.session
    await require_room(session, ScopedLock.CONTENT_FILTERS, count_filters, limit=MOST, full=TooManyFilters)
    _judge_keywords(await count_keywords(session), known)
    now = utc_now()
    values = {**new.model_dump(), "config": known.model_dump(exclude_unset=True)}
    row = ContentFilterRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    _say(change, "content_filter.created", row)
    return row


async def update(change: Change, row: ContentFilterRow, body: ContentFilterUpdate) -> ContentFilterRow:
    """The filter as it would be is judged whole: what was good for one type need not be for another."""
    sent = body.sent()
    if sent.get("scope") == "org":
        sent.setdefault("group_id", None)
    would: dict[str, Any] = {name: getattr(row, name) for name in NewContentFilter.model_fields} | sent
    known = config.read(would["filter_type"], would["config"])
    await _judge_scope(change.session, would["scope"], would["group_id"])
    await acquire_scoped(change.session, ScopedLock.CONTENT_FILTERS, str(change.tenant_id))
    keywords = await count_keywords(change.session)
    _judge_keywords(keywords - len(row.config.get("keywords", ())), known)
    for name, value in {**would, "config": known.model_dump(exclude_unset=True)}.items():
        setattr(row, name, value)
    row.updated_at = utc_now()
    _say(change, "content_filter.updated", row, changed=sorted(sent))
    return row


async def delete(change: Change, row: ContentFilterRow) -> None:
    await change.session.delete(row)
    _say(change, "content_filter.deleted", row)


async def try_out(parts: Apart, ports: Ports, trial: FilterTrial) -> FilterTried:
    """What the filters in force do about a text. Raises `BadScope` where there is no such group."""
    if trial.group_id is not None:
        async with parts.reading() as session:
            await _judge_scope(session, "group", trial.group_id)
    filter_set = (await ports.policies.current(parts.tenant_id)).filters
    filters = filter_set.of(() if trial.group_id is None else (trial.group_id,))
    blocking, failed, reason = await content_filters.judge(filter_set, filters, {"text": trial.text}, ports)
    return FilterTried(
        blocked=blocking is not None,
        blocked_by=None if blocking is None else TriedFilter.model_validate(blocking),
        instructions=[TriedInstruction.model_validate(each) for each in filters if each.instruction],
        filters_evaluated=len(filters),
        failed=[TriedFilter.model_validate(each) for each in failed],
        failure=reason,
    )


async def _judge_scope(session: AsyncSession, scope: str, group_id: UUID | None) -> None:
    """Raises `BadScope`."""
    if scope == "org":
        if group_id is not None:
            raise BadScope("belongs to the scope 'group'")
        return
    if group_id is None:
        raise BadScope("is required for the scope 'group'")
    if not await lock_group(session, group_id):
        raise BadScope("is not a group of this organization")


def _judge_keywords(others: int, known: config.Config) -> None:
    """Raises `TooManyFilters`."""
    if isinstance(known, config.KeywordConfig) and others + len(known.keywords) > config.MOST_KEYWORDS:
        raise TooManyFilters


def _say(change: Change, action: str, row: ContentFilterRow, **more: Any) -> None:
    """Without the configuration: a list of what must not be spoken of is nothing for everybody who reads the log."""
    told = ContentFilter.model_validate(row).model_dump(include={"name", "filter_type", "scope", "enabled", "priority"})
    group = None if row.group_id is None else str(row.group_id)
    change.record(action, "content_filter", row.id, **told, group_id=group, **more)
    change.touch("policy", change.tenant_id, urgent=True)
