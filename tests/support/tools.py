"""What a process that works on jobs has, made of a platform that runs."""

from typing import Any

from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.worker.host import PlatformHost


def tools_of(host: PlatformHost, **changed: Any) -> Tools:
    """`changed` are fields that the test brings itself."""
    context = {
        "settings": host.settings, "database": host.database, "sealer": host.sealer, "outbound": host.outbound,
        "clock": host.clock, "receivers": host.receivers, **changed,
    }  # fmt: skip
    return Tools(**context)
