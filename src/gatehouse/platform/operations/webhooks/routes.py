"""The endpoints of webhooks (docs/webhooks.md), under both of their path prefixes."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response

from gatehouse.foundation.http.bodies import PathId, ResponseBody
from gatehouse.foundation.http.lists import (
    OptionalWindow,
    optional_window,
    search_parameter,
    sort_parameter,
    windowed,
)
from gatehouse.foundation.http.variants import RequestVariant
from gatehouse.platform.operations.webhooks import service, table, variants
from gatehouse.platform.operations.webhooks.schemas import (
    DeliveryA,
    DeliveryB,
    DeliveryC,
    EventType,
    NewWebhook,
    Sort,
    Tested,
    TestedA,
    Webhook,
    WebhookA,
    WebhookB,
    WebhookC,
    WebhookCreated,
    WebhookUpdate,
)
from gatehouse.platform.operations.webhooks.service import WebhookNotFound
from gatehouse.platform.operations.webhooks.table import WebhookRow
from gatehouse.platform.request.callers import (
    RESPONSES,
    Admin,
    AdminReader,
    AdminStepUp,
)
from gatehouse.platform.request.injected import (
    Changing,
    InSplitTransactions,
    Session,
    loaded,
)
from gatehouse.platform.request.ports import TheHost

Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]
Search = Annotated[str | None, search_parameter("Part of the name or the URL.")]
Enabled = Annotated[bool | None, Query(description="Only enabled, or only disabled ones.")]
LoadedWebhook = Annotated[WebhookRow, Depends(loaded(WebhookRow, "webhook_id", WebhookNotFound))]


async def _new(transactions: InSplitTransactions, host: TheHost, body: NewWebhook) -> NewWebhook:
    await service.check(transactions, host.receivers, body.url)
    return body


async def _update(transactions: InSplitTransactions, host: TheHost, body: WebhookUpdate) -> WebhookUpdate:
    await service.check(transactions, host.receivers, body.url)
    return body


# URLs are checked before a session is opened, because resolving a name takes time, and no row should be locked
# meanwhile.
CheckedNew = Annotated[NewWebhook, Depends(_new)]
CheckedUpdate = Annotated[WebhookUpdate, Depends(_update)]

_CREATE_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The organization has the maximum number of webhooks."}
}
_REPLAY_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    404: {"description": "The webhook does not exist, or the delivery is no longer stored."},
    409: {"description": "The delivery succeeded or waits for an attempt, or the webhook is disabled."},
}


async def list_webhooks(
    caller: AdminReader,
    session: Session,
    window: Window,
    response: Response,
    *,
    search: Search = None,
    enabled: Enabled = None,
    event: Annotated[EventType | None, Query(description="Only webhooks that get this event.")] = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> object:
    """Lists the organization's webhooks without their secrets, by default all of them, newest first. The header
    `X-Total-Count` is the number of all matching webhooks, regardless of `limit` and `offset`."""
    query = table.list_query(search=search, enabled=enabled, event=event, sort=sort)
    return await windowed(session, query, window, response)


async def create_webhook(
    caller: AdminStepUp, variant: RequestVariant, body: CheckedNew, change: Changing, host: TheHost
) -> Webhook:
    """Creates a webhook, which receives the events that occur from now on. In variant A the response contains the
    secret; no other response does."""
    return variants.created(variant, await service.create(change, host.sealer, body), body.secret)


async def read_webhook(
    caller: AdminReader, webhook: LoadedWebhook, variant: RequestVariant, session: Session
) -> Webhook:
    """Returns one webhook with its last 20 deliveries."""
    return variants.detail(variant, webhook, await table.last_deliveries(session, webhook.id))


async def update_webhook(
    caller: AdminStepUp, body: CheckedUpdate, webhook: LoadedWebhook, change: Changing, host: TheHost
) -> object:
    """Changes the fields that are sent. A disabled webhook receives no events, and its waiting deliveries fail."""
    return service.update(change, host.sealer, webhook, body)


async def delete_webhook(caller: AdminStepUp, webhook: LoadedWebhook, change: Changing) -> None:
    """Deletes a webhook and its deliveries, including waiting ones."""
    await service.delete(change, webhook)


async def test_webhook(
    caller: Admin, webhook_id: UUID, variant: RequestVariant, transactions: InSplitTransactions, host: TheHost
) -> Tested:
    """Sends a `webhook_test` event at once, and returns the receiver's response."""
    return variants.tested(variant, await service.test(transactions, host.receivers, host.sealer, webhook_id))


async def replay_delivery(
    caller: Admin, webhook: LoadedWebhook, delivery_id: PathId, variant: RequestVariant, change: Changing
) -> ResponseBody:
    """Queues a delivery again that is a `dead_letter`, or `failed` without a further attempt. It is sent like a new
    one, after the deliveries that wait: with its id and payload, a new signature, and up to three attempts. Only the
    first of two concurrent calls succeeds."""
    return variants.replayed(variant, await service.replay(change, webhook, delivery_id))


router = APIRouter(tags=["Webhooks"], responses=RESPONSES)
for _base in ("/api/admin/webhooks", "/api/v1/admin/webhooks"):
    _item = f"{_base}/{{webhook_id}}"
    router.add_api_route(f"{_base}/", list_webhooks, methods=["GET"], response_model=list[Webhook])
    router.add_api_route(
        f"{_base}/", create_webhook, methods=["POST"], status_code=201, response_model=WebhookCreated | Webhook,
        responses=_CREATE_RESPONSES,
    )  # fmt: skip
    router.add_api_route(_item, read_webhook, methods=["GET"], response_model=WebhookA | WebhookB | WebhookC)
    router.add_api_route(_item, update_webhook, methods=["PUT"], response_model=Webhook)
    router.add_api_route(_item, delete_webhook, methods=["DELETE"], status_code=204)
    router.add_api_route(f"{_item}/test", test_webhook, methods=["POST"], response_model=TestedA | Tested)
    router.add_api_route(
        f"{_item}/deliveries/{{delivery_id}}/replay", replay_delivery, methods=["POST"], status_code=202,
        response_model=DeliveryA | DeliveryB | DeliveryC, responses=_REPLAY_RESPONSES,
    )  # fmt: skip
