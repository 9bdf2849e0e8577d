"""Polls the platform for the next bundle, so that a change at the platform is active at the outpost within a
second."""

import asyncio
import base64
import contextlib
import random
import time
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.tasks import is_running
from gatehouse.outpost.platform_link.client import PlatformClient, PlatformRefusal, PlatformUnavailable
from gatehouse.outpost.policy.bundle import BundleStore

log = structlog.get_logger(__name__)

#: Maximum time that the platform delays the response to a poll while nothing changes.
_LONG_POLL_SECONDS: Final = 50
#: The interval between retries doubles from the first to the second number.
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.5, 5.0
#: The key set is requested again after this time, or when a bundle uses a key that is not in the set.
_KEYS_TTL_SECONDS: Final = 600.0


class Follower:
    """Polls from `start` to `stop`."""

    def __init__(self, platform: PlatformClient, bundles: BundleStore) -> None:
        self._platform = platform
        self._bundles = bundles
        self._keys_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        #: Unix time of the platform's last response.
        self.heard_at: float | None = None
        #: Why the platform cannot be reached; None if it responds.
        self.fault: str | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._follow(), name="policy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def poll_now(self) -> None:
        """Ends the delay between two polls. Called when a newer bundle is known to exist."""
        self._wake.set()

    async def _follow(self) -> None:
        delay = _MIN_RETRY_SECONDS
        while is_running():
            try:
                if await self._poll():
                    delay = _MIN_RETRY_SECONDS
                    continue
            except (PlatformUnavailable, PlatformRefusal) as error:
                self._record_failure(str(error))
            except Exception:
                # An unexpected error must not end the polling.
                self._record_failure("an unexpected error; see the log")
                log.exception("outpost.follow_fault")
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads load
                    await self._wake.wait()
            delay = min(delay * 2, _MAX_RETRY_SECONDS)

    async def _poll(self) -> bool:
        """Polls once. Returns whether the poll has succeeded, so that the next poll may follow immediately."""
        bundles = self._bundles
        bundles.status.polled_at = time.time()
        if not bundles.keys or time.time() - self._keys_at > _KEYS_TTL_SECONDS:
            bundles.trust(await self._platform.keys())
            self._keys_at = time.time()
        # The first poll, and the first poll after a failure, do not wait for a change, because their response shows
        # that the platform is reachable.
        connected = bundles.in_force is not None and self.heard_at is not None and self.fault is None
        polled = await self._platform.bundle(bundles.etag, _LONG_POLL_SECONDS if connected else 0)
        if self.fault is not None:
            log.info("outpost.platform_back")
        self.heard_at, self.fault = time.time(), None
        if polled.signed is None:
            # The policy is unchanged. Its version may be a later one, so the next poll sends the new ETag.
            bundles.etag = polled.etag or bundles.etag
            if polled.retry_after:
                await asyncio.sleep(polled.retry_after)
            return True
        if self._names_a_new_key(polled.signed):
            bundles.trust(await self._platform.keys())
        return await bundles.take(polled.signed, "platform", etag=polled.etag)

    def _record_failure(self, reason: str) -> None:
        if self.fault is None:
            log.warning("outpost.platform_away", reason=reason)
        self.fault = reason

    def _names_a_new_key(self, signed: str) -> bool:
        return _kid(signed) not in self._bundles.keys


def _kid(signed: str) -> str | None:
    try:
        header = signed.partition(".")[0]
        fields = msgspec.json.decode(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))
        return str(fields["kid"])
    except (ValueError, KeyError, TypeError, msgspec.DecodeError):
        return None
