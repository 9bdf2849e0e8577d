"""The policy bundle that an outpost receives: the records and callers of an organization, as JSON
(docs/outpost-protocol.md, "The policy").

Readers ignore unknown fields and use defaults for missing fields. An incompatible change needs another `KIND`, which
older readers refuse.

A bundle contains no readable secret. API keys are SHA-256 digests. By default, a bundle does not contain the
credentials of providers, and the outpost reads them from its own environment. If the organization has chosen to send
them, they are sealed to the key of the outpost's certificate (`foundation.secrets.ecies`)."""

import hashlib
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import ProviderRecord, TenantRecords, credential_key

KIND: Final = "gatehouse/policy-bundle/1"


class UnreadableBundle(Exception):
    """The document is not a bundle, or its kind is not supported by this version."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. `digest` is its SHA-256 digest, and `expires_at` is a Unix time. If `scopes` is None, the key has all
    rights of its user."""

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
    """An OAuth client. `scopes` are the current scopes of the client. They also limit tokens that were issued
    before."""

    client_id: UUID
    enabled: bool = True
    scopes: tuple[str, ...] = ()


class CallerRecords(msgspec.Struct, frozen=True, kw_only=True):
    #: replaces the rate limit of all users of the organization, in requests per minute
    custom_rate_limit_rpm: int | None = None
    users: tuple[UserRecord, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    clients: tuple[ClientRecord, ...] = ()


class BundleContents(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a bundle that is the same for all outposts of an organization.

    `policy` and `callers` are in the form in which they are sent. `switched_off` contains the ids of models that a kill
    switch has stopped. If credentials are sent, `at_rest` contains them as they are stored: pairs of a provider's id
    and its credentials, sealed under a key of the platform. `digest` is a digest of these four fields. `version` is the
    revision at which the records were read. `credential_key` gives the name of a credential.
    """

    version: int
    policy: msgspec.Raw
    callers: msgspec.Raw
    switched_off: tuple[UUID, ...]
    at_rest: tuple[tuple[str, str], ...] = ()
    digest: bytes


class PolicyBundle(msgspec.Struct, frozen=True, kw_only=True):
    """The bundle of one outpost. `version` never decreases. Times are Unix times."""

    kind: str
    version: int
    issued_at: int
    expires_at: int
    outpost_id: UUID
    tenant_id: TenantId
    policy: TenantRecords
    callers: CallerRecords = CallerRecords()
    switched_off: frozenset[UUID] = frozenset()
    #: maps the id of a provider to its default credential, and `provider/label` to each further one: JSON objects,
    #: sealed to the key of this outpost
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
    """Return the contents of a bundle. `callers` are `CallerRecords` as JSON.

    Three things are left out of the result's `policy`: the revision, which is the version of the bundle, the sealed
    credentials, and the MCP servers, because outposts do not serve them. If `with_credentials` is set, `at_rest` has
    the sealed credentials of the enabled providers."""
    sealed = [
        pair for provider in records.providers if with_credentials and provider.enabled for pair in _at_rest(provider)
    ]
    at_rest = tuple(sorted(sealed))
    providers = tuple(
        msgspec.structs.replace(
            provider,
            sealed_credentials=None,
            credentials=tuple(msgspec.structs.replace(entry, sealed=None) for entry in provider.credentials),
            egress_policy=None,
        )
        for provider in records.providers
    )
    plain = msgspec.structs.replace(records, providers=providers, mcp_servers=(), revision=0)
    # The order of the encoding is deterministic, so that equal records have equal digests.
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


def _at_rest(provider: ProviderRecord) -> list[tuple[str, str]]:
    """Return the sealed credentials of a provider by their names, without the disabled ones."""
    sealed = [] if provider.credential_state == "disabled" else [(provider.id, provider.sealed_credentials)]
    sealed += [
        (credential_key(provider.id, entry.label), entry.sealed)
        for entry in provider.credentials
        if entry.state != "disabled"
    ]
    return [(key, text) for key, text in sealed if text is not None]


def encode(
    bundle_contents: BundleContents,
    *,
    outpost_id: UUID,
    tenant_id: TenantId,
    issued_at: int,
    expires_at: int,
    credentials: Mapping[str, str] | None = None,
) -> bytes:
    """Return the JSON of a bundle. `credentials` are the credentials in `at_rest`, sealed to this outpost."""
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
    """Return the authenticated context for sealing a provider's credentials to an outpost."""
    return f"outpost:{outpost_id}:{tenant_id}:{provider_id}".encode()


def decode(document: bytes) -> PolicyBundle:
    """Return the bundle in a document. The revision of its policy is the version of the bundle. Raises
    `UnreadableBundle`."""
    try:
        kind = msgspec.json.decode(document, type=_Kind).kind
        if kind != KIND:
            raise UnreadableBundle(f"its kind is {kind[:64]!r}, but this version supports only {KIND!r}")
        bundle = msgspec.json.decode(document, type=PolicyBundle)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableBundle(str(error)) from None
    return msgspec.structs.replace(bundle, policy=msgspec.structs.replace(bundle.policy, revision=bundle.version))
