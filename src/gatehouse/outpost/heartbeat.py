"""Tells the portal that this outpost is there, and how it is (decisions 8, Outposts).

Nothing here depends on the portal: what becomes of a heartbeat is told in the status, and nowhere else.
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

from gatehouse.foundation.tasks import wanted
from gatehouse.outpost.identity import Identity
from gatehouse.outpost.platform import unreached

log = structlog.get_logger(__name__)

#: Seconds between two. The portal takes an outpost for stale after five minutes.
PAUSE: Final = 30.0
_PATIENCE: Final = aiohttp.ClientTimeout(total=10.0, connect=5.0)


class Beat(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the portal is told. `version` is the software's, `bundle_version` the policy's; `journal_bytes` is what is
    not handed in yet."""

    version: str
    status: Literal["ready", "not_ready"]
    journal_bytes: int
    bundle_version: int | None = None


class Heartbeat:
    """Beats from `start` to `stop`. `issuer` is what the portal calls itself, where that is not its address."""

    def __init__(
        self, url: str, identity: Identity, beat: Callable[[], Beat], *, issuer: str | None = None, pause: float = PAUSE
    ) -> None:
        parts = urlsplit(url)
        self._url = url.rstrip("/") + "/v1/outposts/heartbeat"
        self._audience = issuer or f"{parts.scheme}://{parts.netloc}"
        self._identity = identity
        self._beat = beat
        self._pause = pause
        self._task: asyncio.Task[None] | None = None
        #: Unix time of the last one that the portal has taken
        self.taken: float | None = None
        #: why it does not take them, while it does not
        self.fault: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._beating(), name="heartbeat")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _beating(self) -> None:
        # No redirects are followed and no cookies kept: it is one address that is trusted.
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            while wanted():
                try:
                    await self._once(session)
                    self.taken, self.fault = time.time(), None
                except _NotTaken as error:
                    self.fault = str(error)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    self.fault = unreached(error)
                except Exception:
                    # What nobody has thought of must not make a living outpost look dead.
                    self.fault = "an unexpected fault; the log has it"
                    log.exception("outpost.heartbeat_fault")
                await asyncio.sleep(self._pause)

    async def _once(self, session: aiohttp.ClientSession) -> None:
        headers = {
            "Authorization": f"Bearer {self._identity.token(self._audience)}", "Content-Type": "application/json",
        }  # fmt: skip
        async with session.post(
            self._url, headers=headers, data=msgspec.json.encode(self._beat()), allow_redirects=False,
            ssl=self._identity.context(), timeout=_PATIENCE,
        ) as answer:  # fmt: skip
            if answer.status != 200:
                raise _NotTaken(answer.status, await answer.content.read(4096))


class _NotTaken(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        try:
            said: Any = msgspec.json.decode(body)
        except msgspec.DecodeError:
            said = None
        reason = (said.get("detail") or said.get("error")) if isinstance(said, dict) else None
        super().__init__(f"{status}: {reason or 'no reason given'}")
