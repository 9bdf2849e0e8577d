"""Bundles from files, for an outpost without a network connection (docs/outposts.md, "Without a connection").

`fetch` is the counterpart on a machine that reaches the platform: it writes the two files.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Final

import msgspec
import structlog

from gatehouse.foundation.tasks import is_running
from gatehouse.outpost import durable_files
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.platform_link.client import PlatformClient, read_keys
from gatehouse.outpost.policy.bundle import BundleStore, keys_of
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.policy.bundles.contents import PolicyBundle
from gatehouse.policy.bundles.signing import verify

log = structlog.get_logger(__name__)

#: Seconds between two polls of the files.
_POLL_INTERVAL_SECONDS: Final = 1.0


class BundleFiles:
    """Applies the bundle of the files at `start` and whenever a file changes, until `stop`. Unusable files change
    nothing; the bundles' status gives the reason."""

    def __init__(self, bundles: BundleStore, bundle: Path, keys: Path) -> None:
        self._bundles = bundles
        self._bundle, self._keys = bundle, keys
        self._seen: object = None
        self._task: asyncio.Task[None] | None = None

    def trust(self) -> bool:
        """Trusts only the keys of the keys file. Call it before the stored bundle is verified, so that a removed key is
        no longer accepted. Returns False if the file has no usable key."""
        return self._bundles.trust(keys_of(durable_files.read(self._keys)))

    async def start(self) -> None:
        await self._poll()
        self._task = asyncio.create_task(self._follow(), name="policy")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        while is_running():
            await asyncio.sleep(_POLL_INTERVAL_SECONDS)
            try:
                await self._poll()
            except Exception:
                # An unforeseen error must not end the polling.
                log.exception("outpost.bundle_file_fault")

    async def _poll(self) -> None:
        self._bundles.status.asked_at = time.time()
        try:
            stamp = await asyncio.to_thread(durable_files.stamp, self._bundle, self._keys)
            # A renewed private key may open credentials that could not be opened before.
            seen = (stamp, self._bundles.private_keys())
            if seen == self._seen:
                return
            signed = await asyncio.to_thread(self._bundle.read_bytes)
        except OSError as error:
            self._seen = None
            self._bundles.failed(f"The bundle's file cannot be read: {error}")
            return
        # A half-copied file fails its signature check, and is read again once its stamp changes.
        self._seen = seen
        if not self.trust():
            # An operator who removed a stolen key must learn that it is still trusted.
            self._bundles.failed("The keys' file holds no key that can be used: those of before are trusted still")
            return
        await self._bundles.take(signed.decode("ascii", "replace").strip(), "file", aged=True)


async def fetch(settings: OutpostSettings, bundle: Path, keys: Path) -> PolicyBundle:
    """Writes the newest bundle and the platform's public keys to files that are carried to the outpost.

    Raises `BadSettings`, `PlatformUnavailable`, `PlatformRefusal`, `BundleRefused`, `OSError`.
    """
    settings = settings.model_copy(update={"outpost_airgap": False}).checked()
    assert settings.outpost_id is not None
    assert settings.platform_management_url is not None
    identity = OutpostIdentity.of(settings)
    platform = PlatformClient(settings.platform_management_url, identity, issuer=settings.platform_issuer)
    try:
        published = await platform.keys()
        polled = await platform.bundle("", 0)
    finally:
        await platform.close()
    signed = polled.signed or ""
    verified = verify(signed, read_keys(published), outpost_id=settings.outpost_id, now=time.time())
    # The keys first: a copy of both files never has a bundle without its key.
    durable_files.write(keys, msgspec.json.encode({"keys": published}))
    durable_files.write(bundle, signed.encode("ascii"))
    return verified
