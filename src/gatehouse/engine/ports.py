"""Interfaces that a host implements for the engine. The platform and the outpost differ in these implementations, and
share the whole pipeline."""

import asyncio
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, NoDetectors
from gatehouse.engine.exchange import CallRequest, Exchange, Received
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.rate_limits.selection import RateLimits
from gatehouse.engine.records.tracing import Trace
from gatehouse.engine.verdict import ApprovalResult, Ask
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.counters import Claim, RateDecision
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.processes.shared_times import SharedTimes
from gatehouse.foundation.secrets.owned_ids import OwnedIds
from gatehouse.policy.budgets import Budget, CallAmounts
from gatehouse.policy.catalog import Candidate
from gatehouse.policy.mcp import McpServerRecord
from gatehouse.policy.snapshot import Snapshot


class CredentialStore(Protocol):
    def identify(self, received: Received) -> Caller:
        """Return the caller of a request, from memory. Raises a subclass of `Unauthenticated`."""

    def still_good(self, caller: Caller) -> bool:
        """Return whether the caller's credential is still valid. This is checked again right before each attempt."""


class PolicySource(Protocol):
    async def current(self, tenant_id: TenantId) -> Snapshot:
        """Return the tenant's snapshot, from memory or compiled on first use. Raises `Unavailable` if the snapshot is
        not in memory and cannot be compiled."""


class Counters(Protocol):
    async def take(self, key: str, limit: int, *, own_limit: int | None = None) -> RateDecision:
        """Count one request of `key` if it fits within `limit` requests in 60 seconds. If only the requests of this
        worker are counted, `own_limit` applies instead. Never fails."""

    async def take_all(self, *claims: Claim) -> RateDecision:
        """Count one request against every claim, or against none if a limit is exhausted. Never fails."""


class Maintenance(msgspec.Struct, frozen=True):
    """An active maintenance mode. `retry_after` is in seconds."""

    message: str
    retry_after: int


class Switches(Protocol):
    """Live state that must take effect without a compilation of the policy."""

    def closed(self) -> Refusal | None:
        """Return the refusal of all requests if the gateway is closed now, or None."""

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        """Return whether a kill switch disables this model or its provider now."""

    def mcp_stopped(self, *ids: UUID) -> bool:
        """Return whether one of these MCP servers and tools may not be called now: because of a kill switch, because it
        was disabled or removed, or because a tool is not approved any more."""

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool: ...

    def in_touch(self) -> Awaitable[None]:
        """Return at once, unless this process was suspended or lost its connection. In that case, synchronize first.
        Raises `Unavailable` if `SWITCH_FAIL_MODE` requires it."""

    def up_to_date(self) -> bool:
        """Return whether the local state is recent enough to send the first byte of a call. If not, `in_touch` is
        awaited again."""


class Reserved(Protocol):
    """The amount that is reserved for one call, until it is settled."""

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        """Return the budgets that the call counts against, with the start of each period in Unix time."""

    def headers(self) -> dict[str, str]:
        """Return the `X-Budget-*` headers, from the budgets with the least left."""


class Spend(Protocol):
    """Budgets, which are checked and reserved before a call and settled after it."""

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        """Return the refusal if one of the budgets is exhausted, else None. Uses only memory."""

    async def reserve(
        self,
        budgets: Sequence[Budget],
        taking: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        """Reserve the most that the call can use, so that parallel calls never exceed a limit together. If not
        `enforced`, the call is counted and only budgets of the host itself (`Budget.own`) can refuse it. `user_id` is
        passed to listeners if the call reaches a limit. Without `announce`, listeners are not informed of a refusal.
        Raises `Refusal`."""

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None:
        """Release the unused part of the reservation, or all of it if `spent` is None. It is also called for a call
        that failed or was cancelled. Never fails."""


class ResponseCache(Protocol):
    """Cached answers, by a key of the request. Entries may be evicted at any time."""

    async def get(self, key: bytes) -> bytes | None:
        """Return the answer, or None. Never fails, and takes at most 50 milliseconds."""

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        """Store an answer for `seconds`. Does not block, and never fails."""


class NoCache:
    """A response cache that stores nothing."""

    async def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        return None


class Secrets(Protocol):
    def open(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        """Return a provider's credential in plain text. `key` is the name of the credential (`credential_key`).
        `sealed` is None if the policy contains none."""


class Journal(Protocol):
    def append(self, record: bytes) -> asyncio.Future[None]:
        """Append a record. The future is done once the record survives the end of this process. Raises `Unavailable` if
        the journal is full."""

    def full(self) -> bool: ...


class Approvals(Protocol):
    """Requests that wait for a person's decision (docs/approvals.md)."""

    async def decision(self, x: CallRequest, ask: Ask) -> ApprovalResult:
        """Wait for a person's decision, at most `DLP_PROMPT_TIMEOUT_SECONDS`. Raises `Unavailable` if approvals are not
        available. The call is cancelled when the client disconnects."""


class Sampler(Protocol):
    """Storage of samples of requests (`engine.stages.calls.sampling`)."""

    def admits(self, tenant_id: UUID) -> bool:
        """Return whether the organization may store another sample in this minute. If so, counts the sample."""

    def seal(self, tenant_id: UUID, sample_id: UUID, contents: bytes) -> tuple[str, str]:
        """Return a sealed key, and the contents sealed under that key, for storage."""


class UserToken(Protocol):
    """A user's access token for an MCP server."""

    @property
    def value(self) -> str: ...

    @property
    def connection_id(self) -> UUID:
        """Return the id of the connection that the token is for. A user who connects again, perhaps with another
        account, has another connection."""

    def is_current(self) -> bool:
        """Return whether the token may still be sent. The user or an administrator may have removed it."""

    def refuse(self) -> None:
        """Note that the MCP server has refused the token, so that the next call uses another."""


class UserTokens(Protocol):
    """Users' access tokens for MCP servers that need each user's consent."""

    async def get(self, tenant_id: TenantId, user_id: UUID, server: McpServerRecord) -> UserToken:
        """Return the token, usually from memory. Raises `McpConnectionRequired` if the user must consent first, and
        `Unavailable`."""


class Meter(Protocol):
    """Metrics of model calls and of calls of tools."""

    def tool_called(self, x: CallRequest | None, outcome: str, upstream_seconds: float | None) -> None:
        """Count a call of a tool. `x` is None if the agent named no tool that it may call. `upstream_seconds` is None
        if nothing was sent. Never fails."""

    def finished(self, x: Exchange) -> None:
        """Count the result of a model call. Takes a few microseconds, and never fails."""

    def refused(self, code: str | None) -> None:
        """Count a model call that was refused before its caller was known. Never fails."""


class NoMeter:
    """A meter that counts nothing."""

    def tool_called(self, x: CallRequest | None, outcome: str, upstream_seconds: float | None) -> None:
        return None

    def finished(self, x: Exchange) -> None:
        return None

    def refused(self, code: str | None) -> None:
        return None


class Traces(Protocol):
    """Distributed traces of requests."""

    def begin(self, x: Received) -> Trace | None:
        """Return the trace of the request, or None if the request is in no trace."""

    def finished(self, x: Exchange) -> None:
        """Export a finished request if it is in a trace. Takes a few microseconds, and never fails."""


class StdioServers(Protocol):
    """MCP servers that are processes of this machine."""

    def offers(self, tenant_id: TenantId, server: McpServerRecord) -> bool:
        """Return whether the operator of this host offers the server's command to the organization."""

    def outbound(
        self, tenant_id: TenantId, server: McpServerRecord, environment: Mapping[str, str], owner: bytes
    ) -> Outbound:
        """Return the transport to a server, which is started at its first use. `environment` are the organization's
        values of variables, and `owner` identifies the caller."""


class Ports(msgspec.Struct, kw_only=True):
    """The external services that a stage can use, in addition to the request and its policy."""

    credentials: CredentialStore
    policies: PolicySource
    limits: RateLimits
    counters: Counters
    switches: Switches
    spend: Spend
    approvals: Approvals
    secrets: Secrets
    journal: Journal
    outbound: Outbound
    clock: Clock
    meter: Meter = msgspec.field(default_factory=NoMeter)
    #: None if this host runs no MCP servers
    stdio: StdioServers | None = None
    #: None if this host exports no traces
    traces: Traces | None = None
    #: None if this host has no accounts of users at MCP servers
    user_tokens: UserTokens | None = None
    #: None if this host stores no samples
    sampler: Sampler | None = None
    detectors: Detectors = msgspec.field(default_factory=NoDetectors)
    dlp: DlpOptions = DlpOptions()
    #: latencies measured by this worker only, unless the host shares latencies between workers
    latencies: Latencies = msgspec.field(default_factory=Latencies)
    cache: ResponseCache = msgspec.field(default_factory=NoCache)
    #: makes the ids of responses that providers keep; ids of another process are valid only if both have the same keys
    owned_ids: OwnedIds = msgspec.field(default_factory=lambda: OwnedIds([secrets.token_bytes(32)]))
    #: treatment of fields of a call that no table lists (`engine.fields`)
    unknown_fields: Literal["pass", "refuse"] = "pass"
    max_response_bytes: int = 64 * 1024**2
    #: time limit for all attempts of a request together, until the answer has arrived or its stream has begun
    request_deadline_seconds: float = 600.0
    #: cost after which a model call with tools of MCP servers calls no further tools
    tool_run_max_cost_usd: Decimal = Decimal(1)
    #: number of consecutive failures that open the circuit of a model or of a provider's connections, and the time for
    #: which the circuit stays open
    circuit_failures: int = 5
    circuit_seconds: float = 10.0
    #: number of workers of this machine, among which the limits of deployments are divided
    workers: int = 1
    #: number of this worker, from 0 to `workers` - 1
    worker: int = 0
    #: the ends of the cooldowns that the workers of this machine share (`routing.cooldowns`)
    shared_cooldowns: SharedTimes = msgspec.field(default_factory=SharedTimes)
    #: the address of this host for clients, without a slash at the end; None if it is not known
    public_url: str | None = None
