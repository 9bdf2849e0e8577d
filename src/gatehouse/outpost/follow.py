"""Keeps asking for the next bundle, so that a change on the platform is in force here within a second."""

import asyncio
import base64
import contextlib
import random
import time
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.tasks import wanted
from gatehouse.outpost.bundle import Bundles
from gatehouse.outpost.platform import Platform, PlatformAway, PlatformRefuses

log = structlog.get_logger(__name__)

#: Seconds that the platform is asked to wait for a change.
_WAIT: Final = 50
#: Seconds between two tries where there is no answer, growing.
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 5.0
#: Seconds for which the key set is believed, unless a bundle names a key that is not in it.
_KEYS_SECONDS: Final = 600.0


class Follower:
    """Asks from `start` to `stop`."""

    def __init__(self, platform: Platform, bundles: Bundles) -> None:
        self._platform = platform
        self._bundles = bundles
        self._keys_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        #: Unix time of the platform's last answer
        self.heard: float | None = None
        #: why it gives no answer, while it does not
        self.fault: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._follow(), name="policy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def hurry(self) -> None:
        """There is a newer bundle: whoever pauses asks now."""
        self._hurry.set()

    async def _follow(self) -> None:
        pause = _FIRST_PAUSE
        while wanted():
            try:
                if await self._once():
                    pause = _FIRST_PAUSE
                    continue
            except (PlatformAway, PlatformRefuses) as error:
                self._away(str(error))
            except Exception:
                # What nobody has thought of must not keep the outpost from ever hearing of a change again.
                self._away("an unexpected fault; the log has it")
                log.exception("outpost.follow_fault")
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads load
                    await self._hurry.wait()
            pause = min(pause * 2, _LAST_PAUSE)

    async def _once(self) -> bool:
        """Whether all is well, so that the next question may follow at once."""
        bundles = self._bundles
        bundles.status.asked = time.time()
        if not bundles.keys or time.time() - self._keys_at > _KEYS_SECONDS:
            bundles.trust(await self._platform.keys())
            self._keys_at = time.time()
        # The first answer, and that after a silence, is asked for at once: that it is there must not wait for a change.
        in_touch = bundles.in_force is not None and self.heard is not None and self.fault is None
        polled = await self._platform.bundle(bundles.etag, _WAIT if in_touch else 0)
        if self.fault is not None:
            log.info("outpost.platform_back")
        self.heard, self.fault = time.time(), None
        if polled.signed is None:
            # The same policy, of a later version: saying so confirms it.
            bundles.etag = polled.etag or bundles.etag
            if polled.retry_after:
                await asyncio.sleep(polled.retry_after)
            return True
        if self._names_a_new_key(polled.signed):
            bundles.trust(await self._platform.keys())
        return await bundles.take(polled.signed, "platform", etag=polled.etag)

    def _away(self, why: str) -> None:
        if self.fault is None:
            log.warning("outpost.platform_away", reason=why)
        self.fault = why

    def _names_a_new_key(self, signed: str) -> bool:
        return _kid(signed) not in self._bundles.keys


def _kid(signed: str) -> str | None:
    try:
        head = signed.partition(".")[0]
        found = msgspec.json.decode(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        return str(found["kid"])
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        return None
