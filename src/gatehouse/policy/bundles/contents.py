"""The policy bundle that an outpost receives: the records and callers of an organization, as JSON
(docs/outpost-protocol.md, "The policy").

Readers ignore unknown fields and use defaults for missing fields. An incompatible change needs another `KIND`, which
older readers refuse.

MCP servers are a field of the bundle and not of its policy. An outpost of an earlier version ignores the field, and so
serves no MCP server.

A bundle contains no readable secret. API keys are SHA-256 digests. By default, a bundle does not contain the
credentials of providers and MCP servers, and the outpost reads them from its own environment. If the organization has
chosen to send them, they are sealed to the key of the outpost's certificate (`foundation.secrets.ecies`)."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload
from uuid import UUID

import msgspec

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import ProviderRecord, TenantRecords, credential_key
from gatehouse.policy.mcp import McpServerRecord, mcp_client_key, mcp_environment_key

KIND: Final = "gatehouse/policy-bundle/1"
#: Maximum size of all MCP servers of a bundle as JSON. Servers that do not fit are left out, so that the rest of the
#: policy still reaches the outposts.
MAX_MCP_BYTES: Final = 8 * 1024 * 1024


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

    `policy`, `callers` and `mcp_servers` are in the form in which they are sent. `switched_off` contains the ids of
    models, MCP servers and tools that a kill switch has stopped. If credentials are sent, `at_rest` contains them as
    they are stored: pairs of a credential's name and the credential, sealed under a key of the platform. `digest` is a
    digest of these fields. `version` is the revision at which the records were read. `credential_key` and the functions
    of `policy.mcp` give the name of a credential. `left_out` has the names of MCP servers that do not fit.
    """

    version: int
    policy: msgspec.Raw
    callers: msgspec.Raw
    switched_off: tuple[UUID, ...]
    mcp_servers: msgspec.Raw
    left_out: tuple[str, ...] = ()
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
    #: ids of models, MCP servers and tools that a kill switch has stopped
    switched_off: frozenset[UUID] = frozenset()
    #: maps the id of a provider to its default credential, `provider/label` to each further one, and the names of
    #: `policy.mcp` to those of MCP servers: JSON objects, sealed to the key of this outpost
    credentials: dict[str, str] = {}
    #: the fields with sealed texts have their fingerprints instead
    mcp_servers: tuple[McpServerRecord, ...] = ()
    #: names of MCP servers that do not fit into the bundle
    mcp_servers_left_out: tuple[str, ...] = ()


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
    mcp_servers: msgspec.Raw
    mcp_servers_left_out: tuple[str, ...]


class _Kind(msgspec.Struct, frozen=True):
    kind: str


def contents(
    records: TenantRecords, callers: bytes, switched_off: frozenset[UUID], *, with_credentials: bool = False
) -> BundleContents:
    """Return the contents of a bundle. `callers` are `CallerRecords` as JSON.

    Three things are left out of the result's `policy`: the revision, which is the version of the bundle, the sealed
    credentials, and the MCP servers, which are a separate field. If `with_credentials` is set, `at_rest` has the sealed
    credentials of the enabled providers and of the MCP servers."""
    servers = _fitting(records.mcp_servers)
    encoded_servers = b"[" + b",".join(servers.values()) + b"]"
    sealed: list[tuple[str, str]] = []
    if with_credentials:
        sealed += [pair for provider in records.providers if provider.enabled for pair in _at_rest(provider)]
        sealed += [pair for server in records.mcp_servers if server.id in servers for pair in _mcp_at_rest(server)]
    at_rest = tuple(sorted(sealed))
    left_out = tuple(server.name for server in records.mcp_servers if server.id not in servers)
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
    encoded_lists = [msgspec.json.encode(values) for values in (stopped, left_out, at_rest)]
    for part in (policy, callers, encoded_servers, *encoded_lists):
        digest.update(hashlib.sha256(part).digest())
    return BundleContents(
        version=records.revision,
        policy=msgspec.Raw(policy),
        callers=msgspec.Raw(callers),
        switched_off=stopped,
        mcp_servers=msgspec.Raw(encoded_servers),
        left_out=left_out,
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


def _fitting(servers: Sequence[McpServerRecord]) -> dict[UUID, bytes]:
    """Return the JSON of the servers that fit into a bundle, by id, in the order of `servers`. Older servers have
    precedence, so that a new one displaces no other: ids are ordered by the time of creation."""
    fitting: dict[UUID, bytes] = {}
    size = 0
    for server in sorted(servers, key=lambda server: server.id):
        encoded = msgspec.json.encode(_without_secrets(server))
        if size + len(encoded) <= MAX_MCP_BYTES:
            fitting[server.id] = encoded
            size += len(encoded)
    return {server.id: fitting[server.id] for server in servers if server.id in fitting}


def _without_secrets(server: McpServerRecord) -> McpServerRecord:
    """Return the server with fingerprints in place of its sealed texts. A fingerprint shows the outpost that there is a
    credential, and that it was replaced."""
    oauth, stdio, user_oauth = server.oauth, server.stdio, server.user_oauth
    if oauth is not None:
        oauth = msgspec.structs.replace(oauth, sealed_secret=_fingerprint(oauth.sealed_secret))
    if stdio is not None:
        stdio = msgspec.structs.replace(stdio, sealed_environment=_fingerprint(stdio.sealed_environment))
    if user_oauth is not None:
        # Outposts have no accounts of users.
        user_oauth = msgspec.structs.replace(user_oauth, sealed_secret=None)
    return msgspec.structs.replace(
        server,
        sealed_header=_fingerprint(server.sealed_header),
        oauth=oauth,
        stdio=stdio,
        user_oauth=user_oauth,
        egress_policy=None,
    )


def _mcp_at_rest(server: McpServerRecord) -> Iterator[tuple[str, str]]:
    """Yield the sealed credentials of an MCP server by their names."""
    if server.sealed_header is not None:
        yield server.secret_key, server.sealed_header
    if server.oauth is not None:
        yield mcp_client_key(server.id), server.oauth.sealed_secret
    if server.stdio is not None and server.stdio.sealed_environment is not None:
        yield mcp_environment_key(server.id), server.stdio.sealed_environment


@overload
def _fingerprint(sealed: str) -> str: ...
@overload
def _fingerprint(sealed: str | None) -> str | None: ...
def _fingerprint(sealed: str | None) -> str | None:
    return None if sealed is None else f"sha256:{hashlib.sha256(sealed.encode()).hexdigest()}"


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
            mcp_servers=bundle_contents.mcp_servers,
            mcp_servers_left_out=bundle_contents.left_out,
        )
    )


def sealing_context(outpost_id: UUID, tenant_id: TenantId, name: str) -> bytes:
    """Return the authenticated context for sealing the credential with this name to an outpost."""
    return f"outpost:{outpost_id}:{tenant_id}:{name}".encode()


def decode(document: bytes) -> PolicyBundle:
    """Return the bundle in a document. The revision of its policy is the version of the bundle, and its policy contains
    the MCP servers. Raises `UnreadableBundle`."""
    try:
        kind = msgspec.json.decode(document, type=_Kind).kind
        if kind != KIND:
            raise UnreadableBundle(f"its kind is {kind[:64]!r}, but this version supports only {KIND!r}")
        bundle = msgspec.json.decode(document, type=PolicyBundle)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableBundle(str(error)) from None
    policy = msgspec.structs.replace(bundle.policy, revision=bundle.version, mcp_servers=bundle.mcp_servers)
    return msgspec.structs.replace(bundle, policy=policy)
