"""Records operators' calls in the journal. Like the records of requests, they then enter the audit log and are uploaded
to the platform.

`outpost.state` stores the changed state itself. So an operator can engage the kill switch while the journal is full:
then only the log of the process contains the call.
"""

import time
from typing import Annotated

import structlog
from fastapi import Depends, Request

from gatehouse.engine.records import upload_notices
from gatehouse.engine.records.upload_notices import Operated
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.ids import new_id
from gatehouse.outpost.admin.access import admitted
from gatehouse.outpost.host import OutpostHost

log = structlog.get_logger(__name__)


class CallRecorder:
    """Records what one request of an operator has changed."""

    def __init__(self, host: OutpostHost, address: str) -> None:
        self._host = host
        self._address = address

    async def record(self, call: str, **details: str | float | bool | None) -> None:
        """Records a call. Returns when the entry is safe from the end of this process, or when the journal has refused
        it."""
        in_force = self._host.bundles.in_force
        entry = Operated(
            id=new_id(),
            timestamp=time.time(),
            call=call,
            ip=self._address,
            tenant_id=None if in_force is None else in_force.bundle.tenant_id,
            details=details,
        )
        try:
            await self._host.journal.append(upload_notices.encode(entry))
        except Unavailable as error:
            log.warning("outpost.call_not_recorded", call=call, reason=error.code)


async def _recorder(request: Request, host: Annotated[OutpostHost, Depends(admitted)]) -> CallRecorder:
    return CallRecorder(host, request.state.client_address)


#: Parameter of a route, after the caller.
Recorder = Annotated[CallRecorder, Depends(_recorder)]
