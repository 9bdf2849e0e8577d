"""Sends heartbeats with the outpost's state to the portal (docs/outposts.md, "Heartbeats").

No other part depends on the portal: the result of a heartbeat is only shown in the outpost's status.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp
import msgspec
import structlog

from gatehouse.foundation.outbound.operator_client import OperatorClient
from gatehouse.foundation.tasks import is_running
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.platform_link.client import unreached

log = structlog.get_logger(__name__)

#: Seconds between two heartbeats. The portal reports an outpost as stale after five minutes.
INTERVAL_SECONDS: Final = 30.0
_REQUEST_TIMEOUT_SECONDS: Final = 10.0


class HeartbeatBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a heartbeat. `version` is the version of the software, and `bundle_version` is that of the policy.
    `journal_bytes` is the size of the records that are not uploaded yet."""

    version: str
    status: Literal["ready", "not_ready"]
    journal_bytes: int
    bundle_version: int | None = None


class HeartbeatSender:
    """Sends heartbeats from `start` to `stop`. `issuer` is the portal's public URL, if it differs from `url`."""

    def __init__(
        self,
        url: str,
        identity: OutpostIdentity,
        body: Callable[[], HeartbeatBody],
        *,
        issuer: str | None = None,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        parts = urlsplit(url)
        self._url = url.rstrip("/") + "/v1/outposts/heartbeat"
        self._audience = issuer or f"{parts.scheme}://{parts.netloc}"
        self._identity = identity
        self._body = body
        self._interval = interval
        self._client = OperatorClient()
        self._task: asyncio.Task[None] | None = None
        #: Unix time of the last heartbeat that the portal accepted.
        self.accepted_at: float | None = None
        #: Why the last heartbeat failed; None if it was accepted.
        self.fault: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="heartbeat")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        try:
            while is_running():
                try:
                    await self._send()
                    self.accepted_at, self.fault = time.time(), None
                except _HeartbeatRefused as error:
                    self.fault = str(error)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    self.fault = unreached(error)
                except Exception:
                    # An unexpected error must not end the heartbeats of a running outpost.
                    self.fault = "an unexpected error; see the log"
                    log.exception("outpost.heartbeat_fault")
                await asyncio.sleep(self._interval)
        finally:
            await self._client.close()

    async def _send(self) -> None:
        headers = {
            "Authorization": f"Bearer {self._identity.token(self._audience)}", "Content-Type": "application/json",
        }  # fmt: skip
        async with self._client.request(
            "POST", self._url, headers=headers, body=msgspec.json.encode(self._body()),
            seconds=_REQUEST_TIMEOUT_SECONDS, tls=self._identity.context(),
        ) as response:  # fmt: skip
            if response.status != 200:
                raise _HeartbeatRefused(response.status, await response.content.read(4096))


class _HeartbeatRefused(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        try:
            content: Any = msgspec.json.decode(body)
        except msgspec.DecodeError:
            content = None
        reason = (content.get("detail") or content.get("error")) if isinstance(content, dict) else None
        super().__init__(f"{status}: {reason or 'no reason given'}")
