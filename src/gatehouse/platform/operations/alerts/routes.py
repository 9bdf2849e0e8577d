"""The endpoints of alert rules (docs/alerts.md)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.lists import (
    OffsetWindow,
    OptionalWindow,
    count_query,
    offset_window,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.platform.operations.alerts import service, table
from gatehouse.platform.operations.alerts.schemas import (
    AlertRule,
    AlertRuleUpdate,
    Evaluated,
    History,
    Metric,
    NewAlertRule,
    Sort,
)
from gatehouse.platform.operations.alerts.service import AlertRuleNotFound
from gatehouse.platform.operations.alerts.table import AlertRuleRow
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost

router = APIRouter(
    prefix="/api/alerts",
    tags=["Alerts"],
    responses={**RESPONSES, 400: {"description": "A field is not valid."}},
)

LoadedRule = Annotated[AlertRuleRow, Depends(loaded(AlertRuleRow, "rule_id", AlertRuleNotFound))]


async def _new(transactions: InSplitTransactions, host: TheHost, body: NewAlertRule) -> NewAlertRule:
    await service.check(transactions, host.receivers, body.webhook_url)
    return body


async def _update(transactions: InSplitTransactions, host: TheHost, body: AlertRuleUpdate) -> AlertRuleUpdate:
    await service.check(transactions, host.receivers, body.webhook_url)
    return body


# URLs are checked before a session is opened, because resolving a name takes time, and no row should be locked
# meanwhile.
CheckedNew = Annotated[NewAlertRule, Depends(_new)]
CheckedUpdate = Annotated[AlertRuleUpdate, Depends(_update)]
Search = Annotated[str | None, search_parameter("Part of the name.")]
RulesWindow = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
Window = Annotated[OffsetWindow, Depends(offset_window(default=50, maximum=200))]


@router.get("", response_model=list[AlertRule])
async def list_alert_rules(
    caller: AdminReader,
    session: Session,
    window: RulesWindow,
    response: Response,
    *,
    search: Search = None,
    enabled: Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")] = None,
    metric_type: Annotated[Metric | None, Query(description="Only rules of this metric.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> object:
    """Lists the organization's alert rules, by default all of them, newest first. The header `X-Total-Count` is the
    number of all matching rules, regardless of `limit` and `offset`."""
    query = table.list_query(search=search, enabled=enabled, metric_type=metric_type, sort=sort)
    return await windowed(session, query, window, response)


@router.post(
    "",
    status_code=201,
    response_model=AlertRule,
    responses={409: {"description": "The organization has the maximum number of alert rules."}},
)
async def create_alert_rule(caller: Admin, body: CheckedNew, change: Changing) -> object:
    """Creates a rule. If the rule is enabled, it is evaluated at once and then by schedule."""
    return await service.create(change, body)


@router.post("/evaluate", response_model=Evaluated)
async def evaluate_alert_rules(caller: Admin, change: Changing, host: TheHost) -> object:
    """Evaluates all enabled rules now. Notifications are sent within seconds."""
    return await service.evaluate_now(change, host.clock.now())


@router.get("/{rule_id}", response_model=AlertRule)
async def read_alert_rule(caller: AdminReader, rule: LoadedRule) -> object:
    """Returns one rule."""
    return rule


@router.put("/{rule_id}", response_model=AlertRule)
async def update_alert_rule(caller: Admin, body: CheckedUpdate, rule: LoadedRule, change: Changing) -> object:
    """Changes the fields that are sent. If the rule is enabled, it is then evaluated at once."""
    return service.update(change, rule, body)


@router.delete("/{rule_id}", status_code=204)
async def delete_alert_rule(caller: Admin, rule: LoadedRule, change: Changing) -> None:
    """Deletes a rule and its history."""
    await service.delete(change, rule)


@router.get("/{rule_id}/history", response_model=History)
async def read_alert_history(caller: AdminReader, rule: LoadedRule, session: Session, window: Window) -> object:
    """Lists the times at which the rule triggered, newest first."""
    query = table.history(rule.id)
    total = await session.scalar(count_query(query)) or 0
    return {"history": (await session.scalars(window.apply(query))).all(), "total": total}
