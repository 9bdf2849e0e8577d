"""The bundle that an outpost receives: an organization's records and its callers, as JSON (docs/outpost-protocol.md,
"The policy").

Readers ignore unknown fields; missing fields have their defaults. An incompatible change needs another `KIND`, which
older readers refuse.

It contains no readable secret. Keys are SHA-256 digests. Providers come without their credentials, which an outpost has
in its own environment, unless the organization has chosen to send them: then they are sealed to the key of the
outpost's certificate (`foundation.secrets.ecies`).
"""

import hashlib
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.records import TenantRecords

KIND: Final = "gatehouse/policy-bundle/1"


class UnreadableBundle(Exception):
    """Not a bundle, or one of a kind that this version does not support."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, by its SHA-256 digest. `expires_at` is Unix time; `scopes` None: all rights of its user."""

    id: UUID
    user_id: UUID
    digest: bytes
    enabled: bool = True
    expires_at: float | None = None
    scopes: tuple[str, ...] | None = None


class UserRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    email: str
    role: str
    active: bool = True
    groups: tuple[UUID, ...] = ()


class ClientRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An OAuth client. `scopes` are its present ones, which limit older tokens too."""

    client_id: UUID
    enabled: bool = True
    scopes: tuple[str, ...] = ()


class CallerRecords(msgspec.Struct, frozen=True, kw_only=True):
    #: replaces the limit of all users of the organization
    custom_rate_limit_rpm: int | None = None
    users: tuple[UserRecord, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    clients: tuple[ClientRecord, ...] = ()


class BundleContents(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the bundle that all outposts of an organization share: `policy` and `callers` as sent.

    `switched_off` contains the ids of models stopped by a kill switch. `at_rest` contains the credentials of providers,
    if they are sent, as stored: by provider, sealed under the platform's keys. `digest` changes with any of them and
    with nothing else; `version` is the revision at which they were read.
    """

    version: int
    policy: msgspec.Raw
    callers: msgspec.Raw
    switched_off: tuple[UUID, ...]
    at_rest: tuple[tuple[str, str], ...] = ()
    digest: bytes


class PolicyBundle(msgspec.Struct, frozen=True, kw_only=True):
    """One outpost's bundle. `version` never decreases; times are Unix times."""

    kind: str
    version: int
    issued_at: int
    expires_at: int
    outpost_id: UUID
    tenant_id: TenantId
    policy: TenantRecords
    callers: CallerRecords = CallerRecords()
    switched_off: frozenset[UUID] = frozenset()
    #: providers' credentials: by provider, a JSON object sealed to this outpost's key
    credentials: dict[str, str] = {}


class _BundleDocument(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    version: int
    issued_at: int
    expires_at: int
    outpost_id: UUID
    tenant_id: TenantId
    policy: msgspec.Raw
    callers: msgspec.Raw
    switched_off: tuple[UUID, ...]
    credentials: Mapping[str, str]


class _Kind(msgspec.Struct, frozen=True):
    kind: str


def contents(
    records: TenantRecords, callers: bytes, switched_off: frozenset[UUID], *, with_credentials: bool = False
) -> BundleContents:
    """Return the contents. `callers` are `CallerRecords` as JSON. Removes the revision, which is the bundle's version,
    and sealed credentials, which `at_rest` contains for enabled providers if `with_credentials` is set."""
    sealed = [
        (provider.id, provider.sealed_credentials)
        for provider in records.providers
        if with_credentials and provider.enabled
    ]
    at_rest = tuple(sorted((provider_id, text) for provider_id, text in sealed if text is not None))
    providers = tuple(
        msgspec.structs.replace(provider, sealed_credentials=None, egress_policy=None) for provider in records.providers
    )
    plain = msgspec.structs.replace(records, providers=providers, revision=0)
    # Deterministic, so that the same records have the same digest.
    policy = msgspec.json.encode(msgspec.to_builtins(plain, str_keys=True, order="deterministic"))
    stopped = tuple(sorted(switched_off))
    digest = hashlib.sha256()
    for part in (policy, callers, msgspec.json.encode(stopped), msgspec.json.encode(at_rest)):
        digest.update(hashlib.sha256(part).digest())
    return BundleContents(
        version=records.revision,
        policy=msgspec.Raw(policy),
        callers=msgspec.Raw(callers),
        switched_off=stopped,
        at_rest=at_rest,
        digest=digest.digest(),
    )


def encode(
    bundle_contents: BundleContents,
    *,
    outpost_id: UUID,
    tenant_id: TenantId,
    issued_at: int,
    expires_at: int,
    credentials: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bundle's JSON. `credentials` are the contents' own, sealed to this outpost."""
    return msgspec.json.encode(
        _BundleDocument(
            kind=KIND,
            version=bundle_contents.version,
            issued_at=issued_at,
            expires_at=expires_at,
            outpost_id=outpost_id,
            tenant_id=tenant_id,
            policy=bundle_contents.policy,
            callers=bundle_contents.callers,
            switched_off=bundle_contents.switched_off,
            credentials=credentials or {},
        )
    )


def sealing_context(outpost_id: UUID, tenant_id: TenantId, provider_id: str) -> bytes:
    """Return the context that an outpost's copy of a provider's credentials is bound to."""
    return f"outpost:{outpost_id}:{tenant_id}:{provider_id}".encode()


def decode(document: bytes) -> PolicyBundle:
    """Return the bundle; its policy's revision is the bundle's version. Raises `UnreadableBundle`."""
    try:
        kind = msgspec.json.decode(document, type=_Kind).kind
        if kind != KIND:
            raise UnreadableBundle(f"its kind is {kind[:64]!r}, and {KIND!r} is what this version reads")
        bundle = msgspec.json.decode(document, type=PolicyBundle)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableBundle(str(error)) from None
    return msgspec.structs.replace(bundle, policy=msgspec.structs.replace(bundle.policy, revision=bundle.version))
