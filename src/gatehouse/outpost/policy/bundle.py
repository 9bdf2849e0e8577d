"""The bundle in force: verified, compiled with this outpost's overrides, swapped by one assignment, and stored.

A refused bundle changes nothing, and `status` gives the reason (docs/outposts.md, "The policy").
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
from gatehouse.outpost import durable_files
from gatehouse.outpost.money.budget import own_budget
from gatehouse.outpost.platform_link.client import read_keys
from gatehouse.outpost.policy.callers import Callers
from gatehouse.outpost.policy.sealed_credentials import NO_CREDENTIALS, OpenedCredentials, open_credentials
from gatehouse.outpost.state import BudgetSet
from gatehouse.policy.bundles.contents import PolicyBundle
from gatehouse.policy.bundles.signing import BundleRefused, verify
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.overlay import Overrides
from gatehouse.policy.snapshot import Snapshot

log = structlog.get_logger(__name__)

_BUNDLE_FILE: Final = "bundle.jws"
_ETAG_FILE: Final = "bundle.etag"
_KEYS_FILE: Final = "keys.json"


class NotLoaded(Unavailable):
    """No bundle is in force (docs/outposts.md, "Errors")."""

    code = "service_unavailable"
    message = "This outpost has no policy yet: it waits for the platform, or for a bundle file."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class InForce(msgspec.Struct, frozen=True):
    """Everything that decides about requests, as one value, so that a reader sees one bundle throughout."""

    bundle: PolicyBundle
    snapshot: Snapshot
    callers: Callers
    credentials: OpenedCredentials = NO_CREDENTIALS


class BundleStatus(msgspec.Struct):
    """Unix times of the last poll, receipt, activation and failure, and the reason why the last received bundle was
    refused. `source` is `platform`, `file` or `kept`."""

    asked_at: float | None = None
    fetched_at: float | None = None
    activated_at: float | None = None
    failed_at: float | None = None
    fault: str | None = None
    source: str | None = None


class BundleStore:
    """Implements the engine's `Policies`. Bundles come into force one at a time, in the order of their versions."""

    def __init__(
        self,
        outpost_id: UUID,
        folder: Path,
        activated: Callable[[InForce], None] = lambda _: None,
        *,
        private_keys: Callable[[], Sequence[EllipticCurvePrivateKey]] = tuple,
    ) -> None:
        """`activated` is called with each bundle that comes into force. `private_keys` returns the keys that
        credentials in a bundle may be sealed to."""
        self._outpost_id = outpost_id
        self._folder = folder
        self._activated = activated
        self.private_keys = private_keys
        self._overrides = Overrides()
        self._budget = BudgetSet()
        self._lock = asyncio.Lock()
        self.keys: dict[str, SigningKey] = {}
        self.in_force: InForce | None = None
        #: The signed form of the bundle in force.
        self.signed: str | None = None
        self.etag = ""
        self.status = BundleStatus()

    async def current(self, tenant_id: TenantId) -> Snapshot:
        in_force = self.in_force
        # Callers come from the bundle, so they belong to its organization.
        if in_force is None or in_force.snapshot.tenant_id != tenant_id:
            raise NotLoaded
        return in_force.snapshot

    async def load_kept(self) -> None:
        """Loads the bundle that was in force when this outpost ended. An expired policy is better than none."""
        self.trust(keys_of(durable_files.read(self._folder / _KEYS_FILE)), keep=False)
        signed = durable_files.read(self._folder / _BUNDLE_FILE)
        if signed is not None and await self.take(signed.decode("ascii", "replace"), "kept", fetched=False):
            self.etag = (durable_files.read(self._folder / _ETAG_FILE) or b"").decode("latin-1")

    def trust(self, published: Sequence[Mapping[str, Any]], *, keep: bool = True) -> bool:
        """Replaces the trusted keys by the platform's published keys. Returns False, and change nothing, if none of
        them is usable."""
        keys = read_keys([dict(jwk) for jwk in published])
        if not keys:
            return False
        if keys.keys() != self.keys.keys():
            self.keys = keys
            if keep:
                durable_files.write(self._folder / _KEYS_FILE, msgspec.json.encode({"keys": list(published)}))
        return True

    async def take(self, signed: str, source: str, *, fetched: bool = True, aged: bool = False, etag: str = "") -> bool:
        """Verifies a bundle and puts it in force; returns whether it came into force. With `fetched` the bundle is new
        here: it is stored, and must not have expired, unless it is `aged`, as a bundle that crosses an air gap may be.
        """
        async with self._lock:
            previous = self.in_force
            self.status.fetched_at = time.time()
            try:
                # In a thread: compiling a thousand rules is slow, and requests continue meanwhile.
                now = time.time() if fetched and not aged else None
                candidate = await asyncio.to_thread(self._compile, signed, previous, now)
            except BundleRefused as error:
                self.failed(f"The bundle ({source}) is refused: {error}")
                return False
            if fetched and previous is None:
                # The first bundle is stored before it answers requests, so that the outpost still serves them after
                # kill -9. A later bundle applies first: its revocations must not wait for the disk.
                await asyncio.to_thread(self._keep, signed, etag)
            self._swap(candidate, source)
            self.signed, self.etag = signed, etag
            if fetched and previous is not None:
                await asyncio.to_thread(self._keep, signed, etag)
            return True

    def failed(self, reason: str) -> None:
        """Records that a bundle was refused: logged once, and in the status until a bundle comes into force."""
        if self.status.fault != reason:
            log.warning("outpost.bundle_failed", reason=reason)
        self.status.failed_at, self.status.fault = time.time(), reason

    async def set_overrides(self, overrides: Overrides | None = None, *, budget: BudgetSet | None = None) -> None:
        """Applies the outpost's own overrides and budget; None keeps the present ones. Raises `BundleRefused` if no
        policy can be compiled with them."""
        async with self._lock:
            previous = self.in_force
            overrides = self._overrides if overrides is None else overrides
            budget = self._budget if budget is None else budget
            if previous is not None:
                snapshot = await asyncio.to_thread(_compiled, previous.bundle, previous.snapshot, overrides, budget)
                in_force = msgspec.structs.replace(previous, snapshot=snapshot)
                self.in_force = in_force
                self._activated(in_force)
            self._overrides, self._budget = overrides, budget

    def _compile(self, signed: str, previous: InForce | None, now: float | None) -> InForce:
        version = 0 if previous is None else previous.bundle.version
        bundle = verify(signed, self.keys, outpost_id=self._outpost_id, in_force=version, now=now)
        if previous is not None and bundle.tenant_id != previous.bundle.tenant_id:
            # The platform would get one organization's records as the other's, and admit its callers.
            raise BundleRefused(
                f"it is organization {bundle.tenant_id}'s, and this outpost {previous.bundle.tenant_id}'s"
            )
        snapshot = _compiled(bundle, None if previous is None else previous.snapshot, self._overrides, self._budget)
        return InForce(bundle, snapshot, Callers(bundle), open_credentials(bundle, self.private_keys()))

    def _swap(self, in_force: InForce, source: str) -> None:
        self.in_force = in_force
        self.status.activated_at, self.status.source = time.time(), source
        self.status.failed_at = self.status.fault = None
        log.info("outpost.bundle_in_force", version=in_force.bundle.version, source=source)
        if in_force.credentials.unopened:
            log.warning("outpost.credentials_unopened", providers=list(in_force.credentials.unopened))
        self._activated(in_force)

    def _keep(self, signed: str, etag: str) -> None:
        try:
            # The ETag is cleared first: without one, or with an older one, the platform only sends the bundle again.
            durable_files.write(self._folder / _ETAG_FILE, b"")
            durable_files.write(self._folder / _BUNDLE_FILE, signed.encode("ascii"))
            durable_files.write(self._folder / _ETAG_FILE, etag.encode("latin-1"))
        except (OSError, UnicodeError) as error:
            log.warning("outpost.bundle_not_kept", reason=str(error))


def _compiled(bundle: PolicyBundle, previous: Snapshot | None, overrides: Overrides, budget: BudgetSet) -> Snapshot:
    """Raises `BundleRefused`."""
    own_overrides = overrides if overrides != Overrides() else None
    # An own budget in the bundle is ignored: the outpost alone sets it.
    budgets = tuple(record for record in bundle.policy.budgets if not record.own)
    own = own_budget(budget, bundle.outpost_id, bundle.tenant_id)
    if own is not None:
        budgets = (*budgets, own)
    compiled = compile_policy(
        msgspec.structs.replace(bundle.policy, overrides=own_overrides, budgets=budgets), previous
    )
    if isinstance(compiled, list):
        raise BundleRefused("; ".join(map(str, compiled)))
    return compiled


def keys_of(document: bytes | None) -> list[dict[str, Any]]:
    """Returns the keys of a key set document as the platform publishes it; none if the text is no such document."""
    try:
        key_set = msgspec.json.decode(document or b"{}")
    except msgspec.DecodeError:
        return []
    keys = key_set.get("keys") if isinstance(key_set, dict) else None
    return [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
