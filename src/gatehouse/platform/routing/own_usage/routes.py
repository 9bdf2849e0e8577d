"""The endpoint of one's own usage (docs/records.md)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from gatehouse.foundation.http.lists import TOTAL_COUNT_HEADER, OptionalWindow, optional_window
from gatehouse.platform.request.callers import RESPONSES, PersonReader
from gatehouse.platform.request.injected import Session
from gatehouse.platform.routing.own_usage import service
from gatehouse.platform.routing.own_usage.schemas import UsagePeriod, UsageSummary

Window = Annotated[OptionalWindow, Depends(optional_window(maximum=200))]

router = APIRouter(tags=["Usage"], responses=RESPONSES)


@router.get("/api/v1/usage/summary", response_model=UsageSummary)
async def read_usage_summary(
    caller: PersonReader, session: Session, window: Window, response: Response, *, period: UsagePeriod = "month"
) -> UsageSummary:
    """Returns your own requests, tokens and cost by day and by model, and what is left of the budgets that your calls
    count against: today, or in the last 7 or 30 days including today, in the organization's time zone. `limit` and
    `offset` select models, by default all of them. The header `X-Total-Count` is the number of all models."""
    summary = await service.summary(session, caller, period)
    response.headers[TOTAL_COUNT_HEADER] = str(len(summary.models))
    summary.models = list(window.part(summary.models))
    return summary
