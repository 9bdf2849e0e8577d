"""The endpoint of one's own usage (docs/records.md)."""

from fastapi import APIRouter

from gatehouse.platform.request.callers import RESPONSES, PersonReader
from gatehouse.platform.request.injected import Session
from gatehouse.platform.routing.own_usage import service
from gatehouse.platform.routing.own_usage.schemas import UsagePeriod, UsageSummary

router = APIRouter(tags=["Usage"], responses=RESPONSES)


@router.get("/api/v1/usage/summary", response_model=UsageSummary)
async def read_usage_summary(caller: PersonReader, session: Session, *, period: UsagePeriod = "month") -> UsageSummary:
    """Returns your own requests, tokens and cost by day and by model, and what is left of the budgets that your calls
    count against: today, or in the last 7 or 30 days with today, in the organization's time zone."""
    return await service.summary(session, caller, period)
