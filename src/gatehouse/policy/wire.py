"""What an outpost is sent: an organization's records, and who may call, as JSON (decisions 9, Bundle).

Tolerant when read: fields that a reader does not know are passed over, those that it misses have their defaults. What
cannot be read so is another `KIND`, which an older reader refuses.

No secret is in it that can be read on the way. Keys are SHA-256 digests. Providers come without their credentials,
which an outpost has from its own environment, unless the organization has chosen to send them: then they are sealed to
the key of the one outpost's certificate (`foundation.ecies`).
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
    """It is no bundle, or one of a kind that this version does not know."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, by the SHA-256 of it. `expires_at` is Unix time; `scopes` None: its user's rights."""

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
    """An OAuth client. `scopes` are what it may have now, whatever an older token of its says."""

    client_id: UUID
    enabled: bool = True
    scopes: tuple[str, ...] = ()


class CallerRecords(msgspec.Struct, frozen=True, kw_only=True):
    #: replaces the limit of all users of the organization
    custom_rate_limit_rpm: int | None = None
    users: tuple[UserRecord, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    clients: tuple[ClientRecord, ...] = ()


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What all of an organization's outposts are sent: `policy` and `callers` as they go over the wire.

    `switched_off` are the ids of models that a kill switch stops. `at_rest` are providers' credentials, where they are
    sent, as the platform's rows have them: by provider, sealed under its own keys. `digest` changes with any of them
    and with nothing else; `version` is the revision at which they were read.
    """

    version: int
    policy: msgspec.Raw
    callers: msgspec.Raw
    switched_off: tuple[UUID, ...]
    at_rest: tuple[tuple[str, str], ...] = ()
    digest: bytes


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """One outpost's. `version` only ever rises; times are Unix times."""

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


class _Written(msgspec.Struct, frozen=True, kw_only=True):
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
) -> Contents:
    """`callers` are `CallerRecords` as JSON. Leaves out the revision, which is the bundle's version; and what is
    sealed, or puts it aside, for the providers that are in use."""
    sealed = [(each.id, each.sealed_credentials) for each in records.providers if with_credentials and each.enabled]
    at_rest = tuple(sorted((provider, text) for provider, text in sealed if text is not None))
    providers = tuple(
        msgspec.structs.replace(each, sealed_credentials=None, egress_policy=None) for each in records.providers
    )
    plain = msgspec.structs.replace(records, providers=providers, revision=0)
    # The same records are the same bytes, in whatever order a set or a dictionary holds them.
    policy = msgspec.json.encode(msgspec.to_builtins(plain, str_keys=True, order="deterministic"))
    stopped = tuple(sorted(switched_off))
    digest = hashlib.sha256()
    for part in (policy, callers, msgspec.json.encode(stopped), msgspec.json.encode(at_rest)):
        digest.update(hashlib.sha256(part).digest())
    return Contents(
        version=records.revision,
        policy=msgspec.Raw(policy),
        callers=msgspec.Raw(callers),
        switched_off=stopped,
        at_rest=at_rest,
        digest=digest.digest(),
    )


def encode(
    held: Contents,
    *,
    outpost_id: UUID,
    tenant_id: TenantId,
    issued_at: int,
    expires_at: int,
    credentials: Mapping[str, str] | None = None,
) -> bytes:
    """`credentials` are the contents' own, sealed to this outpost."""
    return msgspec.json.encode(
        _Written(
            kind=KIND,
            version=held.version,
            issued_at=issued_at,
            expires_at=expires_at,
            outpost_id=outpost_id,
            tenant_id=tenant_id,
            policy=held.policy,
            callers=held.callers,
            switched_off=held.switched_off,
            credentials=credentials or {},
        )
    )


def sealing_context(outpost_id: UUID, tenant_id: TenantId, provider_id: str) -> bytes:
    """What an outpost's copy of a provider's credentials is bound to."""
    return f"outpost:{outpost_id}:{tenant_id}:{provider_id}".encode()


def decode(document: bytes) -> Bundle:
    """The policy has the bundle's version as its revision. Raises `UnreadableBundle`."""
    try:
        kind = msgspec.json.decode(document, type=_Kind).kind
        if kind != KIND:
            raise UnreadableBundle(f"its kind is {kind[:64]!r}, and {KIND!r} is what this version reads")
        bundle = msgspec.json.decode(document, type=Bundle)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableBundle(str(error)) from None
    return msgspec.structs.replace(bundle, policy=msgspec.structs.replace(bundle.policy, revision=bundle.version))
