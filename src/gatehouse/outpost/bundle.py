"""The bundle in force: verified, compiled with this outpost's overrides, swapped in one assignment, and kept.

What is refused changes nothing, and `status` says why (decisions 9, Bundle).
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.jwt import SigningKey
from gatehouse.outpost import kept
from gatehouse.outpost.budget import own_budget
from gatehouse.outpost.callers import Callers
from gatehouse.outpost.platform import read_keys
from gatehouse.outpost.sealed import NOTHING, Opened, opened
from gatehouse.outpost.state import BudgetSet
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.overlay import Overrides
from gatehouse.policy.signing import BundleRefused, verify
from gatehouse.policy.snapshot import Snapshot
from gatehouse.policy.wire import Bundle

log = structlog.get_logger(__name__)

_BUNDLE: Final = "bundle.jws"
_ETAG: Final = "bundle.etag"
_KEYS: Final = "keys.json"


class NotLoaded(Unavailable):
    """Reference 1, Gateway and outpost proxy errors."""

    code = "service_unavailable"
    message = "This outpost has no policy yet: it waits for the platform, or for a bundle's file."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class InForce(msgspec.Struct, frozen=True):
    """All that decides about requests, as one value: whoever read it sees one bundle throughout."""

    bundle: Bundle
    snapshot: Snapshot
    callers: Callers
    credentials: Opened = NOTHING


class BundleStatus(msgspec.Struct):
    """The four times, as Unix time, and what kept the last one out that came. `source`: `platform`, `file` or
    `kept`."""

    asked: float | None = None
    fetched: float | None = None
    activated: float | None = None
    failed: float | None = None
    fault: str | None = None
    source: str | None = None


class Bundles:
    """The engine's `Policies`. One at a time comes into force, in the order of their versions."""

    def __init__(
        self,
        outpost_id: UUID,
        folder: Path,
        activated: Callable[[InForce], None] = lambda _: None,
        *,
        private_keys: Callable[[], Sequence[EllipticCurvePrivateKey]] = tuple,
    ) -> None:
        """`private_keys` are those that credentials in a bundle may be sealed to."""
        self._outpost_id = outpost_id
        self._folder = folder
        self._activated = activated
        self.private_keys = private_keys
        self._overrides = Overrides()
        self._budget = BudgetSet()
        self._turn = asyncio.Lock()
        self.keys: dict[str, SigningKey] = {}
        self.in_force: InForce | None = None
        #: the signed form of what is in force, for peers and for a start without the platform
        self.signed: str | None = None
        self.etag = ""
        self.status = BundleStatus()

    async def current(self, tenant_id: TenantId) -> Snapshot:
        held = self.in_force
        # Callers are the bundle's own: nobody is of another organization.
        if held is None or held.snapshot.tenant_id != tenant_id:
            raise NotLoaded
        return held.snapshot

    async def load_kept(self) -> None:
        """What was in force when this outpost ended. An old policy is better than none."""
        self.trust(keys_of(kept.read(self._folder / _KEYS)), keep=False)
        signed = kept.read(self._folder / _BUNDLE)
        if signed is not None and await self.take(signed.decode("ascii", "replace"), "kept", fetched=False):
            self.etag = (kept.read(self._folder / _ETAG) or b"").decode("latin-1")

    def trust(self, published: Sequence[Mapping[str, Any]], *, keep: bool = True) -> bool:
        """The platform's keys, all of them: what is not among them signs nothing any more. False where there is none
        that can be used, which changes nothing."""
        found = read_keys([dict(each) for each in published])
        if not found:
            return False
        if found.keys() != self.keys.keys():
            self.keys = found
            if keep:
                kept.write(self._folder / _KEYS, msgspec.json.encode({"keys": list(published)}))
        return True

    async def take(self, signed: str, source: str, *, fetched: bool = True, aged: bool = False, etag: str = "") -> bool:
        """Whether it came into force. `fetched`: it is new here, so that it must not have expired (but for one that is
        `aged`, as what is carried over an air gap may be), and is kept."""
        async with self._turn:
            before = self.in_force
            self.status.fetched = time.time()
            try:
                # In a thread: a thousand rules take their time, and requests go on meanwhile.
                now = time.time() if fetched and not aged else None
                found = await asyncio.to_thread(self._made, signed, before, now)
            except BundleRefused as refused:
                self.failed(f"The bundle ({source}) is refused: {refused}")
                return False
            if fetched and before is None:
                # Whoever is answered by the first must find the outpost serving after kill -9 too; a later one's
                # revocations do not wait for the disk.
                await asyncio.to_thread(self._keep, signed, etag)
            self._swap(found, source)
            self.signed, self.etag = signed, etag
            if fetched and before is not None:
                await asyncio.to_thread(self._keep, signed, etag)
            return True

    def failed(self, why: str) -> None:
        """A bundle that should have come into force has not: told once, and in the status until one has."""
        if self.status.fault != why:
            log.warning("outpost.bundle_failed", reason=why)
        self.status.failed, self.status.fault = time.time(), why

    async def lay_over(self, overrides: Overrides | None = None, *, budget: BudgetSet | None = None) -> None:
        """The outpost's own overrides and budget, from now on; None: as before. Raises `BundleRefused` where no policy
        can be made with them."""
        async with self._turn:
            before = self.in_force
            overrides = self._overrides if overrides is None else overrides
            budget = self._budget if budget is None else budget
            if before is not None:
                snapshot = await asyncio.to_thread(_compiled, before.bundle, before.snapshot, overrides, budget)
                held = msgspec.structs.replace(before, snapshot=snapshot)
                self.in_force = held
                self._activated(held)
            self._overrides, self._budget = overrides, budget

    def _made(self, signed: str, before: InForce | None, now: float | None) -> InForce:
        version = 0 if before is None else before.bundle.version
        bundle = verify(signed, self.keys, outpost_id=self._outpost_id, in_force=version, now=now)
        if before is not None and bundle.tenant_id != before.bundle.tenant_id:
            # Records of the one would be handed in as the other's, and its callers let in.
            raise BundleRefused(
                f"it is organization {bundle.tenant_id}'s, and this outpost {before.bundle.tenant_id}'s"
            )
        snapshot = _compiled(bundle, None if before is None else before.snapshot, self._overrides, self._budget)
        return InForce(bundle, snapshot, Callers(bundle), opened(bundle, self.private_keys()))

    def _swap(self, found: InForce, source: str) -> None:
        self.in_force = found
        self.status.activated, self.status.source = time.time(), source
        self.status.failed = self.status.fault = None
        log.info("outpost.bundle_in_force", version=found.bundle.version, source=source)
        if found.credentials.unopened:
            log.warning("outpost.credentials_unopened", providers=list(found.credentials.unopened))
        self._activated(found)

    def _keep(self, signed: str, etag: str) -> None:
        try:
            # First: one that belongs to an older bundle only makes the platform send the newer one again.
            kept.write(self._folder / _ETAG, b"")
            kept.write(self._folder / _BUNDLE, signed.encode("ascii"))
            kept.write(self._folder / _ETAG, etag.encode("latin-1"))
        except (OSError, UnicodeError) as error:
            log.warning("outpost.bundle_not_kept", reason=str(error))


def _compiled(bundle: Bundle, before: Snapshot | None, overrides: Overrides, budget: BudgetSet) -> Snapshot:
    """Raises `BundleRefused`."""
    laid = overrides if overrides != Overrides() else None
    # Whatever the platform says, what is this outpost's own is said here.
    budgets = tuple(each for each in bundle.policy.budgets if not each.own)
    own = own_budget(budget, bundle.outpost_id, bundle.tenant_id)
    if own is not None:
        budgets = (*budgets, own)
    compiled = compile_policy(msgspec.structs.replace(bundle.policy, overrides=laid, budgets=budgets), before)
    if isinstance(compiled, list):
        raise BundleRefused("; ".join(map(str, compiled)))
    return compiled


def keys_of(document: bytes | None) -> list[dict[str, Any]]:
    """Those of a key set as the platform publishes it; none where it is no such document."""
    try:
        found = msgspec.json.decode(document or b"{}")
    except msgspec.DecodeError:
        return []
    keys = found.get("keys") if isinstance(found, dict) else None
    return [each for each in keys if isinstance(each, dict)] if isinstance(keys, list) else []
