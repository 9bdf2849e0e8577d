"""Errors of replays."""

from gatehouse.foundation.errors import TooManyRequests


class ReplayRunning(TooManyRequests):
    """Another replay runs on this worker. Only one runs at a time, because a replay takes up to half of a worker's
    time."""

    code = "replay_running"
    message = "A replay is running on this worker. Try again when it is done."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "10"})
