"""Endpoints of batches, in OpenAI's form."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from gatehouse.platform.batches.batches import service
from gatehouse.platform.batches.batches.schemas import BatchList, ModelBatch, NewBatch
from gatehouse.platform.batches.callers import BATCH_RESPONSES, ModelCaller, identified
from gatehouse.platform.batches.ids import BATCH_PREFIX, BatchId, parse_cursor
from gatehouse.platform.request.injected import Changing, InSplitTransactions, Session
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/v1/batches", tags=["Files and batches"], responses=BATCH_RESPONSES)

ThePath = Annotated[BatchId, Path(alias="batch_id")]


@router.post("", response_model=ModelBatch)
async def create_batch(
    *, caller: ModelCaller, request: Request, body: NewBatch, transactions: InSplitTransactions, host: TheHost
) -> ModelBatch:
    """Creates a batch of model calls from one of your files. Every line is validated at once, and is run within 24
    hours as a call with your credential. 429 `quota_exceeded` if the calls will probably exceed a budget."""
    return await service.create(transactions, host, await identified(request, host, caller), body)


@router.get("", response_model=BatchList)
async def list_batches(
    *,
    caller: ModelCaller,
    session: Session,
    after: Annotated[str | None, Query(description="The id of the last batch of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Batches to return at most.")] = 20,
) -> BatchList:
    """Lists your batches, the newest first."""
    last = parse_cursor(BATCH_PREFIX, "after", after)
    return await service.list_page(session, caller, after=last, limit=limit)


@router.get("/{batch_id}", response_model=ModelBatch)
async def read_batch(caller: ModelCaller, session: Session, batch_id: ThePath) -> ModelBatch:
    """Returns one of your batches, with its progress and cost."""
    return service.shown(await service.load(session, caller, batch_id))


@router.post("/{batch_id}/cancel", response_model=ModelBatch)
async def cancel_batch(caller: ModelCaller, change: Changing, batch_id: ThePath) -> ModelBatch:
    """Cancels one of your batches. Lines in progress are finished first. The results of finished lines can be read."""
    return await service.cancel(change, await service.load(change.session, caller, batch_id, lock=True))
