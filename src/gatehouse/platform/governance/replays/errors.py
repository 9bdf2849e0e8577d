"""What can go wrong with a replay."""

from gatehouse.foundation.errors import TooManyRequests


class ReplayRunning(TooManyRequests):
    """A replay takes up to half of a worker's time: one is enough."""

    code = "replay_running"
    message = "A replay is running on this worker. Try again when it is done."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "10"})
