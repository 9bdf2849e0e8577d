"""Reads bundles from files, for an outpost without a network connection (docs/outposts.md, "Without a connection").

`fetch` writes these files on a machine that can reach the platform.
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
    """Applies the bundle in the files at `start`, and each time that a file changes, until `stop`. If the files are
    unusable, the active bundle does not change, and the status of the bundles shows the reason."""

    def __init__(self, bundles: BundleStore, bundle: Path, keys: Path) -> None:
        self._bundles = bundles
        self._bundle, self._keys = bundle, keys
        self._seen: object = None
        self._task: asyncio.Task[None] | None = None

    def trust(self) -> bool:
        """Replaces the trusted keys by those in the keys file. Call it before the stored bundle is verified, so that a
        key that was removed from the file is no longer accepted. Returns False if the file contains no usable key."""
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
                # An unexpected error must not end the polling.
                log.exception("outpost.bundle_file_fault")

    async def _poll(self) -> None:
        self._bundles.status.polled_at = time.time()
        try:
            stamp = await asyncio.to_thread(durable_files.stamp, self._bundle, self._keys)
            # With a renewed private key, credentials may be decrypted that could not be decrypted before.
            seen = (stamp, self._bundles.private_keys())
            if seen == self._seen:
                return
            signed = await asyncio.to_thread(self._bundle.read_bytes)
        except OSError as error:
            self._seen = None
            self._bundles.failed(f"The bundle file cannot be read: {error}")
            return
        # The signature of a file that is still being copied is invalid. The file is read again when its stamp changes.
        self._seen = seen
        if not self.trust():
            # An operator who has removed a stolen key must learn that it is still trusted.
            self._bundles.failed("The keys file contains no usable key: the former keys are still trusted")
            return
        await self._bundles.take(signed.decode("ascii", "replace").strip(), "file", aged=True)


async def fetch(settings: OutpostSettings, bundle: Path, keys: Path) -> PolicyBundle:
    """Writes the newest bundle and the platform's public keys to files, which an operator carries to the outpost.

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
    # Write the keys first, so that a copy of both files never contains a bundle without its key.
    durable_files.write(keys, msgspec.json.encode({"keys": published}))
    durable_files.write(bundle, signed.encode("ascii"))
    return verified
