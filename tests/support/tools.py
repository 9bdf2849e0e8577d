"""The `Tools` of a job process, made from a running platform."""

from typing import Any

from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.worker.host import PlatformHost


def tools_of(host: PlatformHost, **changed: Any) -> Tools:
    """`changed` has the fields that the test sets."""
    context = {
        "settings": host.settings, "database": host.database, "sealer": host.sealer, "outbound": host.outbound,
        "clock": host.clock, "receivers": host.receivers, **changed,
    }  # fmt: skip
    return Tools(**context)
