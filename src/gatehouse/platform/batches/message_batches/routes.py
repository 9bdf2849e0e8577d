"""Endpoints of message batches, in Anthropic's form."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse

from gatehouse.platform.batches.callers import BATCH_RESPONSES, ModelCaller, identified
from gatehouse.platform.batches.ids import MESSAGE_BATCH_PREFIX, MessageBatchId, parse_cursor, shown_id
from gatehouse.platform.batches.message_batches import service
from gatehouse.platform.batches.message_batches.schemas import (
    CREATION_OPENAPI,
    DeletedMessageBatch,
    MessageBatch,
    MessageBatchList,
)
from gatehouse.platform.batches.results.reading import ENDED, results
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(prefix="/v1/messages/batches", tags=["Files and batches"], responses=BATCH_RESPONSES)

MAX_PAGE_BATCHES: Final = 1000
ThePath = Annotated[MessageBatchId, Path(alias="message_batch_id")]
_RESULTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "One JSON object a line: `custom_id` and `result`.",
        "content": {"application/x-jsonl": {"schema": {"type": "string"}}},
    }
}


@router.post("", response_model=MessageBatch, openapi_extra=CREATION_OPENAPI)
async def create_message_batch(
    caller: ModelCaller, request: Request, transactions: InSplitTransactions, host: TheHost
) -> MessageBatch:
    """Creates a batch of calls of `/v1/messages`. Every call is validated at once, and is run within 24 hours with your
    credential. 429 `quota_exceeded` if the calls will probably exceed a budget."""
    row = await service.create(transactions, host, await identified(request, host, caller), await request.body())
    return service.shown(row, _base_url(request, host))


@router.get("", response_model=MessageBatchList)
async def list_message_batches(
    *,
    caller: ModelCaller,
    session: Session,
    request: Request,
    host: TheHost,
    after_id: Annotated[str | None, Query(description="The id of the last batch of the previous page.")] = None,
    before_id: Annotated[str | None, Query(description="The id of the first batch of the next page.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_BATCHES, description="Batches to return at most.")] = 20,
) -> MessageBatchList:
    """Lists your message batches, the newest first."""
    return await service.list_page(
        session,
        caller,
        _base_url(request, host),
        after=parse_cursor(MESSAGE_BATCH_PREFIX, "after_id", after_id),
        before=parse_cursor(MESSAGE_BATCH_PREFIX, "before_id", before_id),
        limit=limit,
    )


@router.get("/{message_batch_id}", response_model=MessageBatch)
async def read_message_batch(
    caller: ModelCaller, session: Session, request: Request, message_batch_id: ThePath, host: TheHost
) -> MessageBatch:
    """Returns one of your message batches, with its progress and cost."""
    return service.shown(await service.load(session, caller, message_batch_id), _base_url(request, host))


@router.get("/{message_batch_id}/results", response_class=StreamingResponse, responses=_RESULTS)
async def read_message_batch_results(
    caller: ModelCaller, session: Session, message_batch_id: ThePath, host: TheHost
) -> StreamingResponse:
    """Returns the results of an ended message batch, in the order of its calls."""
    row = service.require_ended(await service.load(session, caller, message_batch_id))
    return StreamingResponse(results(host.database, host.sealer, row, ENDED), media_type="application/x-jsonl")


@router.post("/{message_batch_id}/cancel", response_model=MessageBatch)
async def cancel_message_batch(
    caller: ModelCaller, change: Changing, request: Request, message_batch_id: ThePath, host: TheHost
) -> MessageBatch:
    """Cancels one of your message batches. Calls in progress are finished first. The results can be read afterwards."""
    row = await service.load(change.session, caller, message_batch_id, lock=True)
    await service.cancel(change, row)
    return service.shown(row, _base_url(request, host))


@router.delete("/{message_batch_id}", response_model=DeletedMessageBatch)
async def delete_message_batch(caller: ModelCaller, change: Changing, message_batch_id: ThePath) -> DeletedMessageBatch:
    """Deletes one of your ended message batches permanently, with its results."""
    row = await service.load(change.session, caller, message_batch_id, lock=True)
    await service.remove(change, row)
    return DeletedMessageBatch(id=shown_id(MESSAGE_BATCH_PREFIX, row.id))


def _base_url(request: Request, host: Host) -> str:
    return (host.settings.public_url or str(request.base_url)).rstrip("/")
