"""The kill switch (reference 1, Outpost admin calls)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, StrictBool

from gatehouse.foundation.clock import iso
from gatehouse.outpost.host import OutpostHost

router = APIRouter(tags=["Overrides"])


def host_of(request: Request) -> OutpostHost:
    host: OutpostHost = request.app.state.host
    return host


TheOutpost = Annotated[OutpostHost, Depends(host_of)]


class KillSwitch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    active: StrictBool


class KillSwitchState(BaseModel):
    active: bool
    #: when it was engaged
    since: str | None


@router.post("/admin/api/override/kill-switch", response_model=KillSwitchState)
async def set_kill_switch(host: TheOutpost, body: KillSwitch) -> KillSwitchState:
    """Engages or releases the outpost's kill switch: engaged, it rejects every request from the answer on."""
    await host.state.switch(active=body.active)
    since = host.state.said.stopped_at
    return KillSwitchState(active=host.state.stopped, since=None if since is None else iso(since))
