"""What a host supplies to the engine. The platform and the outpost differ here and nowhere else in the pipeline."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from gatehouse.engine.candidate import Candidate
from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, NoDetectors
from gatehouse.engine.exchange import Answered, Asked, Received
from gatehouse.engine.latency import Latencies
from gatehouse.engine.limits import RateLimits
from gatehouse.engine.tracing import Trace
from gatehouse.engine.verdict import Ask
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.counters import Claim, Taken
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.foundation.outbound import Outbound
from gatehouse.policy.budgets import Budget, Taking
from gatehouse.policy.snapshot import Snapshot


class Credentials(Protocol):
    def identify(self, received: Received) -> Caller:
        """Who this is, from memory. Raises a leaf of `Unauthenticated`."""

    def still_good(self, caller: Caller) -> bool:
        """Whether nothing was revoked since: read again right before each attempt."""


class Policies(Protocol):
    async def current(self, tenant_id: TenantId) -> Snapshot:
        """The tenant's snapshot: in memory, or compiled on first use. Raises `Unavailable` when it cannot be had."""


class Counters(Protocol):
    async def take(self, key: str, limit: int) -> Taken:
        """Counts one request of `key` against `limit` in the last 60 seconds, if it fits. Never fails."""

    async def take_all(self, *claims: Claim) -> Taken:
        """Counts one request against every claim, or against none if one has no room. Never fails."""


class Maintenance(msgspec.Struct, frozen=True):
    message: str
    retry_after: int


class Switches(Protocol):
    """Live state that cannot wait for a compile."""

    def closed(self) -> Refusal | None:
        """Why nobody at all is let in now, if so."""

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        """Whether a kill switch stops this model or its provider now."""

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool: ...

    def in_touch(self) -> Awaitable[None]:
        """Returns at once, unless this process was away (stopped, swapped out) or lost touch: then it catches up
        first. Raises `Unavailable` where `SWITCH_FAIL_MODE` says so."""

    def up_to_date(self) -> bool:
        """Whether a first byte may be sent by what is known here; if not, `in_touch` is asked again."""


class Reserved(Protocol):
    """What is set aside for one call, until it is settled."""

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        """The budgets that it counts for, and when their periods began (Unix time)."""

    def headers(self) -> dict[str, str]:
        """`X-Budget-*`, of the budgets with the least left."""


class Spend(Protocol):
    """Budgets: looked at, reserved before a call and settled after it."""

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        """Why nothing is left of one of them, if so. From memory."""

    async def reserve(
        self, budgets: Sequence[Budget], taking: Taking, *, enforced: bool, user_id: UUID | None = None
    ) -> Reserved:
        """Sets aside what the call can take at most, so that parallel calls never pass a limit together. Not
        `enforced`: counted, and refused by the host's own (`Budget.own`) alone. `user_id` is named to listeners where
        the call reaches a limit. Raises `Refusal`."""

    def settle(self, reserved: Reserved, spent: Taking | None) -> None:
        """Gives back what was set aside and not used, all of it for None. Runs also for a call that failed or was
        cancelled. Never fails."""


class ResponseCache(Protocol):
    """Answers by a request's key. What is kept may be forgotten at any time."""

    async def get(self, key: bytes) -> bytes | None:
        """Never fails, and takes 50 ms at most."""

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        """Waits for nothing, and never fails."""


class NoCache:
    async def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        return None


class Secrets(Protocol):
    def open(self, tenant_id: TenantId, provider_id: str, sealed: str | None) -> Mapping[str, str]:
        """A provider's credentials in clear; `sealed` None: the policy holds none."""


class Journal(Protocol):
    def append(self, record: bytes) -> asyncio.Future[None]:
        """Done when the record survives the end of this process. Raises `Unavailable` when the journal is full."""

    def full(self) -> bool: ...


class Approvals(Protocol):
    """Requests held for a person's decision (decisions of the contract: DLP, `human_in_loop`)."""

    async def decision(self, x: Asked, ask: Ask) -> bool:
        """Waits for it, `DLP_PROMPT_TIMEOUT_SECONDS` at most. False: denied, or nobody answered in time. Raises
        `Unavailable` when nobody can be asked. Cancelled when the client leaves."""


class Sampler(Protocol):
    """Samples of requests at rest (`engine.stages.sampling`)."""

    def admits(self, tenant_id: UUID) -> bool:
        """Whether the organization may have one more sample of this minute, which is counted then."""

    def seal(self, tenant_id: UUID, sample_id: UUID, contents: bytes) -> tuple[str, str]:
        """A key, sealed, and the contents under it, as they may be stored."""


class Meter(Protocol):
    def finished(self, x: Answered) -> None:
        """Counts what came of a model call. Costs some microseconds, and never fails."""

    def refused(self, code: str | None) -> None:
        """Counts a model call that was refused before its caller was known. Never fails."""


class NoMeter:
    def finished(self, x: Answered) -> None:
        return None

    def refused(self, code: str | None) -> None:
        return None


class Traces(Protocol):
    """Requests' distributed traces."""

    def begin(self, x: Received) -> Trace | None:
        """None: the request is in no trace."""

    def finished(self, x: Answered) -> None:
        """A request that is in a trace is over. Costs some microseconds, and never fails."""


class Ports(msgspec.Struct, kw_only=True):
    """Everything a stage can reach besides the request and its policy."""

    credentials: Credentials
    policies: Policies
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
    #: None: there are none
    traces: Traces | None = None
    #: None: this host keeps no samples
    sampler: Sampler | None = None
    detectors: Detectors = msgspec.field(default_factory=NoDetectors)
    dlp: DlpOptions = DlpOptions()
    #: of this worker alone, unless the host shares them
    latencies: Latencies = msgspec.field(default_factory=Latencies)
    cache: ResponseCache = msgspec.field(default_factory=NoCache)
    #: what happens to fields of a call that no table has (`engine.fields`)
    unknown_fields: Literal["pass", "refuse"] = "pass"
    max_response_bytes: int = 64 * 1024**2
    #: for all attempts of a request together, until an answer is there or its stream has begun
    request_deadline_seconds: float = 600.0
    #: failures in a row after which a model, or a provider's connections, are left alone, and for how long
    circuit_failures: int = 5
    circuit_seconds: float = 10.0
