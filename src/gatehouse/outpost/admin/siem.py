"""Tests the SIEM receiver of this outpost."""

from time import monotonic
from typing import Annotated

import structlog
from fastapi import APIRouter
from pydantic import Field

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.foundation.siem.senders.sender import BatchRefused
from gatehouse.outpost.admin.access import AuthorizedHost

router = APIRouter(tags=["SIEM"])
log = structlog.get_logger(__name__)


class SiemNotConfigured(Conflict):
    code = "siem_not_configured"
    message = "No receiver is configured: set SIEM_DIRECT_TYPE."


class Tested(ResponseBody):
    success: bool
    error: Annotated[str | None, Field(description="Why the receiver did not accept the event.")]
    latency_ms: float


@router.post("/admin/api/siem/test", response_model=Tested, responses={409: {"description": "No receiver is set."}})
async def test_siem(host: AuthorizedHost) -> Tested:
    """Sends one test event immediately, before the waiting events, and reports whether the receiver has accepted it."""
    if host.siem is None:
        raise SiemNotConfigured
    started_at, fault = monotonic(), None
    in_force = host.bundles.in_force
    try:
        await host.siem.test(None if in_force is None else in_force.bundle.tenant_id)
    except BatchRefused as error:
        fault = error.reason
    log.info("outpost.siem_tested", success=fault is None)
    return Tested(success=fault is None, error=fault, latency_ms=round((monotonic() - started_at) * 1000, 1))
