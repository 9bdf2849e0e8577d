"""The active bundle. A bundle is verified, compiled with this outpost's overrides, activated by one assignment,
and stored.

If a bundle is refused, the active bundle does not change, and `status` shows the reason (docs/outposts.md, "The
policy").
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
from gatehouse.policy.catalog import Overrides
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.snapshot import Snapshot

log = structlog.get_logger(__name__)

_BUNDLE_FILE: Final = "bundle.jws"
_ETAG_FILE: Final = "bundle.etag"
_KEYS_FILE: Final = "keys.json"


class NotLoaded(Unavailable):
    """No bundle is active (docs/outposts.md, "Errors")."""

    code = "service_unavailable"
    message = "This outpost has no policy yet. It waits for the platform, or for a bundle file."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class InForce(msgspec.Struct, frozen=True):
    """All values of one bundle that determine decisions about requests. They are one object, so that a reader never
    uses parts of two bundles."""

    bundle: PolicyBundle
    snapshot: Snapshot
    callers: Callers
    credentials: OpenedCredentials = NO_CREDENTIALS
    #: ids of MCP servers and tools that may be called
    mcp_callable: frozenset[UUID] = frozenset()


class BundleStatus(msgspec.Struct):
    """The Unix times of the last poll (`polled_at`), receipt, activation and failure. `fault` is the reason why the
    last received bundle was refused. `source` is `platform`, `file` or `kept`."""

    polled_at: float | None = None
    fetched_at: float | None = None
    activated_at: float | None = None
    failed_at: float | None = None
    fault: str | None = None
    source: str | None = None


class BundleStore:
    """Implements the engine's `PolicySource`. Bundles become active one at a time, in the order of their versions."""

    def __init__(
        self,
        outpost_id: UUID,
        folder: Path,
        activated: Callable[[InForce], None] = lambda _: None,
        *,
        private_keys: Callable[[], Sequence[EllipticCurvePrivateKey]] = tuple,
    ) -> None:
        """`activated` is called with each bundle that becomes active. `private_keys` returns the keys that decrypt
        the credentials in a bundle."""
        self._outpost_id = outpost_id
        self._folder = folder
        self._activated = activated
        self.private_keys = private_keys
        self._overrides = Overrides()
        self._budget = BudgetSet()
        self._lock = asyncio.Lock()
        self.keys: dict[str, SigningKey] = {}
        self.in_force: InForce | None = None
        #: The signed form of the active bundle.
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
        """Loads the stored bundle, which was active when this outpost ended. It may have expired, because an expired
        policy is better than no policy."""
        self.trust(keys_of(durable_files.read(self._folder / _KEYS_FILE)), keep=False)
        signed = durable_files.read(self._folder / _BUNDLE_FILE)
        if signed is not None and await self.take(signed.decode("ascii", "replace"), "kept", fetched=False):
            self.etag = (durable_files.read(self._folder / _ETAG_FILE) or b"").decode("latin-1")

    def trust(self, published: Sequence[Mapping[str, Any]], *, keep: bool = True) -> bool:
        """Replaces the trusted keys by the platform's published keys, and stores them if `keep` is true. If none of the
        keys is usable, changes nothing and returns False."""
        keys = read_keys([dict(jwk) for jwk in published])
        if not keys:
            return False
        if keys.keys() != self.keys.keys():
            self.keys = keys
            if keep:
                durable_files.write(self._folder / _KEYS_FILE, msgspec.json.encode({"keys": list(published)}))
        return True

    async def take(self, signed: str, source: str, *, fetched: bool = True, aged: bool = False, etag: str = "") -> bool:
        """Verifies a bundle and activates it. Returns whether it has become active.

        If `fetched` is true, the bundle is new: it is stored, and must not have expired. If `aged` is true, it may have
        expired. This is permitted for a bundle that is carried across an air gap.
        """
        async with self._lock:
            previous = self.in_force
            self.status.fetched_at = time.time()
            try:
                # Compile in a thread, because a thousand rules take long and requests must continue meanwhile.
                now = time.time() if fetched and not aged else None
                candidate = await asyncio.to_thread(self._compile, signed, previous, now)
            except BundleRefused as error:
                self.failed(f"The bundle ({source}) is refused: {error}")
                return False
            if fetched and previous is None:
                # The first bundle is stored before it becomes active, so that after kill -9 the outpost continues to
                # serve requests. A later bundle becomes active first, so that its revocations do not wait for the
                # disk.
                await asyncio.to_thread(self._keep, signed, etag)
            self._swap(candidate, source)
            self.signed, self.etag = signed, etag
            if fetched and previous is not None:
                await asyncio.to_thread(self._keep, signed, etag)
            return True

    def failed(self, reason: str) -> None:
        """Records why a bundle was refused. The reason is logged once, and is in the status until a bundle becomes
        active."""
        if self.status.fault != reason:
            log.warning("outpost.bundle_failed", reason=reason)
        self.status.failed_at, self.status.fault = time.time(), reason

    async def set_overrides(self, overrides: Overrides | None = None, *, budget: BudgetSet | None = None) -> None:
        """Applies the outpost's overrides and budget. If one of them is None, it does not change. Raises
        `BundleRefused` if the policy cannot be compiled with them."""
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
            # The outpost would upload records of one organization as those of another one, and would admit the callers
            # of both.
            raise BundleRefused(
                f"it belongs to organization {bundle.tenant_id}, and this outpost to {previous.bundle.tenant_id}"
            )
        snapshot = _compiled(bundle, None if previous is None else previous.snapshot, self._overrides, self._budget)
        credentials = open_credentials(bundle, self.private_keys())
        return InForce(bundle, snapshot, Callers(bundle), credentials, _mcp_callable(bundle))

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
            # Clear the ETag first. Without an ETag, or with an older one, the platform sends the bundle again, which is
            # harmless.
            durable_files.write(self._folder / _ETAG_FILE, b"")
            durable_files.write(self._folder / _BUNDLE_FILE, signed.encode("ascii"))
            durable_files.write(self._folder / _ETAG_FILE, etag.encode("latin-1"))
        except (OSError, UnicodeError) as error:
            log.warning("outpost.bundle_not_kept", reason=str(error))


def _compiled(bundle: PolicyBundle, previous: Snapshot | None, overrides: Overrides, budget: BudgetSet) -> Snapshot:
    """Returns the compiled policy with the outpost's overrides and budget. Raises `BundleRefused`."""
    own_overrides = overrides if overrides != Overrides() else None
    # An outpost's own budget in the bundle is ignored, because only the outpost sets it.
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


def _mcp_callable(bundle: PolicyBundle) -> frozenset[UUID]:
    servers = bundle.mcp_servers
    ids = {server.id for server in servers} | {tool.id for server in servers for tool in server.tools}
    return frozenset(ids - bundle.switched_off)


def keys_of(document: bytes | None) -> list[dict[str, Any]]:
    """Returns the keys of a key set in the form that the platform publishes, or an empty list if the document is not a
    key set."""
    try:
        key_set = msgspec.json.decode(document or b"{}")
    except msgspec.DecodeError:
        return []
    keys = key_set.get("keys") if isinstance(key_set, dict) else None
    return [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
