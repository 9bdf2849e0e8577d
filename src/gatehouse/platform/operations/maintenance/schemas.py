"""Bodies of the maintenance endpoint."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class MaintenanceSwitch(Body):
    enabled: bool
    message: Annotated[
        str | None, Field(max_length=500, description="Message in each refusal.", examples=["Back at 14:00 UTC."])
    ] = None
    drain_timeout_seconds: Annotated[
        int, Field(ge=0, le=600, description="Maximum time in seconds that the call waits for requests in progress.")
    ] = 30


class Maintenance(ResponseBody):
    maintenance_enabled: bool
    enabled_at: Annotated[datetime | None, Field(description="Null when maintenance is off.")]
    message: str | None


class MaintenanceState(Maintenance):
    active_requests_drained: Annotated[
        int, Field(description="Model calls in progress on all workers that ended while the call waited.")
    ]
