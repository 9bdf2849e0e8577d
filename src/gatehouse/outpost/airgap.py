"""The air gap: policy from files that somebody brings (decisions 9), and no call to anybody.

`fetch` is the other half, on a machine that reaches the platform: it writes the two files.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.tasks import wanted
from gatehouse.outpost import kept
from gatehouse.outpost.bundle import Bundles, keys_of
from gatehouse.outpost.identity import Identity
from gatehouse.outpost.platform import Platform, read_keys
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.policy.signing import verify
from gatehouse.policy.wire import Bundle

log = structlog.get_logger(__name__)

#: Seconds between two looks at the files.
_LOOK: Final = 1.0


class BundleFiles:
    """Takes what the files hold, at `start` and each time that one of them changes, until `stop`. Files that cannot be
    used change nothing; the bundles' status says why."""

    def __init__(self, bundles: Bundles, bundle: Path, keys: Path) -> None:
        self._bundles = bundles
        self._bundle, self._keys = bundle, keys
        self._seen: object = None
        self._task: asyncio.Task[None] | None = None

    def trust(self) -> bool:
        """Before the bundle that was kept is looked at: what the file does not name any more signs nothing. False where
        it names no key."""
        return self._bundles.trust(keys_of(kept.read(self._keys)))

    async def start(self) -> None:
        await self._look()
        self._task = asyncio.create_task(self._follow(), name="policy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        while wanted():
            await asyncio.sleep(_LOOK)
            try:
                await self._look()
            except Exception:
                # What nobody has thought of must not keep the outpost from ever seeing a new file.
                log.exception("outpost.bundle_file_fault")

    async def _look(self) -> None:
        self._bundles.status.asked = time.time()
        try:
            stamp = await asyncio.to_thread(kept.stamp, self._bundle, self._keys)
            # A renewed key, too, may open what did not open before.
            seen = (stamp, self._bundles.private_keys())
            if seen == self._seen:
                return
            signed = await asyncio.to_thread(self._bundle.read_bytes)
        except OSError as error:
            self._seen = None
            self._bundles.failed(f"The bundle's file cannot be read: {error}")
            return
        # One that is being copied is refused for its signature, and looked at again when it is whole.
        self._seen = seen
        if not self.trust():
            # Whoever has taken a stolen key out of it must not believe that it is out.
            self._bundles.failed("The keys' file holds no key that can be used: those of before are trusted still")
            return
        await self._bundles.take(signed.decode("ascii", "replace").strip(), "file", aged=True)


async def fetch(settings: OutpostSettings, bundle: Path, keys: Path) -> Bundle:
    """Writes the newest bundle, and the keys that it is signed with, to be carried to the outpost.

    Raises `BadSettings`, `PlatformAway`, `PlatformRefuses`, `BundleRefused`, `OSError`.
    """
    settings = settings.model_copy(update={"outpost_airgap": False}).checked()
    assert settings.outpost_id is not None
    assert settings.platform_management_url is not None
    identity = Identity.of(settings)
    platform = Platform(settings.platform_management_url, identity, issuer=settings.platform_issuer)
    try:
        published = await platform.keys()
        polled = await platform.bundle("", 0)
    finally:
        await platform.close()
    signed = polled.signed or ""
    held = verify(signed, read_keys(published), outpost_id=settings.outpost_id, now=time.time())
    # The keys first: who copies both as they appear has never a bundle without its key.
    kept.write(keys, msgspec.json.encode({"keys": published}))
    kept.write(bundle, signed.encode("ascii"))
    return held
