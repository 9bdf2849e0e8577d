"""An engine with ports that the test controls."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import msgspec
from tests.support.clock import HandClock

from gatehouse.engine.dlp.tiers import Detectors, DlpOptions, NoDetectors
from gatehouse.engine.exchange import CallRequest, Received
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.ports import Maintenance, Ports, Reserved
from gatehouse.engine.rate_limits.selection import PathLimits
from gatehouse.engine.records.outcome import (
    Entry,
    Opened,
    Outcome,
    ToolCalled,
    decode,
    decode_of_platform,
)
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.callers.maintenance import InMaintenance
from gatehouse.engine.verdict import ApprovalResult, Ask
from gatehouse.foundation.counters import Claim, RateDecision
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.outbound import OutboundReply, OutboundRequest
from gatehouse.foundation.settings import Settings
from gatehouse.policy.budgets import Budget, BudgetRecord, CallAmounts
from gatehouse.policy.catalog import (
    Candidate,
    ModelAliasRecord,
    ModelRecord,
    ProviderConfig,
    ProviderRecord,
    RoutingPolicyRecord,
    TenantRecords,
)
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import GovernanceRecords
from gatehouse.policy.mcp import McpServerRecord
from gatehouse.policy.model_access import ModelAccessRecord
from gatehouse.policy.snapshot import Snapshot

TENANT = TenantId(UUID("00000000-0000-7000-8000-0000000000aa"))
USER = UUID("00000000-0000-7000-8000-0000000000bb")


class Stop:
    """A point at which a request can be stopped. `reached` is set when it arrives."""

    def __init__(self) -> None:
        self.at: str | None = None
        self.reached = asyncio.Event()

    async def here(self, place: str) -> None:
        if self.at == place:
            self.reached.set()
            await asyncio.Event().wait()


class NothingReserved:
    """A reservation that counts nothing."""

    periods: tuple[tuple[UUID, int], ...] = ()

    def headers(self) -> dict[str, str]:
        return {}


class ScriptedReply:
    """A provider's answer: a status and the pieces of a body. An exception among the pieces breaks the answer off."""

    def __init__(
        self, stop: Stop, status: int, pieces: list[bytes | Exception], headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {"content-type": "application/json", **(headers or {})}
        self.closed = False
        self._pieces = pieces
        self._stop = stop

    async def read(self, limit: int) -> bytes:
        await self._stop.here("reading")
        return b"".join([piece async for piece in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        for number, piece in enumerate(self._pieces):
            await self._stop.here(f"chunk {number}")
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def close(self) -> None:
        self.closed = True


Scripted: TypeAlias = tuple[int, list[bytes | Exception]] | tuple[int, list[bytes | Exception], Mapping[str, str]]


class ScriptedOutbound:
    """Answers each request with the next entry of the script: a reply (status, pieces, and optional headers), or an
    exception."""

    def __init__(self, stop: Stop) -> None:
        self.script: list[Scripted | Exception] = []
        self.sent: list[OutboundRequest] = []
        self.replies: list[ScriptedReply] = []
        self._stop = stop

    async def send(self, request: OutboundRequest) -> OutboundReply:
        await self._stop.here("connecting")
        if request.before_first_byte is not None:
            request.before_first_byte()
        self.sent.append(request)
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        self.replies.append(ScriptedReply(self._stop, *step))
        return self.replies[-1]

    async def close(self) -> None: ...


class EngineHarness:
    """The engine. The parts that a host provides are attributes that tests can set."""

    def __init__(self, *, dlp: DlpOptions | None = None, detectors: Detectors | None = None, **settings: str) -> None:
        self.stop = Stop()
        self.clock = HandClock()
        self.outbound = ScriptedOutbound(self.stop)
        self.entries: list[Entry] = []
        self.in_maintenance: Maintenance | None = None
        self.off: set[str] = set()
        self.unhealthy: set[str] = set()
        self.caller: Caller | None = Caller(
            kind=CallerKind.API_KEY, tenant_id=TENANT, user_id=USER, api_key_id=new_id(), rate_key=f"user:{USER}"
        )
        self.good = True
        self.journal_full = False
        #: the approvals that were requested, and the person's decision
        self.approval_questions: list[Ask] = []
        self.approves = True
        self.providers: list[ProviderRecord] = []
        self.models: list[ModelRecord] = []
        self.allowlist: tuple[str, ...] | None = None
        #: the settings of the current policy
        self.revision = 1
        self.governance = GovernanceRecords()
        self.model_access: tuple[ModelAccessRecord, ...] = ()
        self.flags: dict[str, bool] = {}
        self.allowed_fields: tuple[str, ...] = ()
        #: a budget, so that the stages for budgets run; this host counts and refuses nothing
        self.budgets: tuple[BudgetRecord, ...] = (
            BudgetRecord(id=TENANT, scope_type="tenant", scope_id=TENANT, period="month", limit_requests=10**9),
        )
        self.routing_policies: tuple[RoutingPolicyRecord, ...] = ()
        self.model_aliases: tuple[ModelAliasRecord, ...] = ()
        self.mcp_servers: tuple[McpServerRecord, ...] = ()
        #: the calls of tools
        self.tool_calls: list[ToolCalled[str]] = []
        #: ids of MCP servers and tools that are switched off
        self.mcp_off: set[UUID] = set()
        self._counters = MemoryCounters(self.clock)
        read = Settings.from_environment(settings)
        self.ports = Ports(
            credentials=self,
            policies=self,
            limits=PathLimits(read),
            counters=self,
            switches=self,
            spend=self,
            approvals=self,
            secrets=self,
            journal=self,
            outbound=self.outbound,
            clock=self.clock,
            latencies=Latencies(self.clock),
            request_deadline_seconds=read.request_deadline_seconds,
            circuit_failures=read.circuit_failures,
            circuit_seconds=read.circuit_seconds,
            detectors=detectors or NoDetectors(),
            dlp=dlp or DlpOptions(),
        )
        self.engine = Engine(self.ports)

    def serve(self, provider: str, *models: str, kind: str = "openai_compatible", **config: Any) -> None:
        """Add a provider with models at 1 USD per million input tokens and 2 USD per million output tokens."""
        base = {"base_url": f"http://{provider}.test/v1", "max_retries": 0}
        self.providers.append(
            ProviderRecord(id=provider, name=provider, kind=kind, config=ProviderConfig(**{**base, **config}))
        )
        for model in models:
            self.models.append(
                msgspec.convert(
                    {
                        "id": str(new_id()), "provider": provider, "model_id": model,
                        "cost_per_input_token": "0.000001", "cost_per_output_token": "0.000002",
                    },
                    ModelRecord,
                )
            )  # fmt: skip

    def request(self, body: Mapping[str, Any] | bytes, *, dialect: str = "openai_chat") -> Received:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Received(
            request_id="req-1", method="POST", path="/v1/chat/completions", headers={}, client_address="192.0.2.1",
            received_at=self.clock.now(), started=self.clock.monotonic(), dialect=dialect, body=raw,
        )  # fmt: skip

    @property
    def outcomes(self) -> list[Outcome]:
        return [entry for entry in self.entries if isinstance(entry, Outcome)]

    @property
    def opened(self) -> list[Opened]:
        return [entry for entry in self.entries if isinstance(entry, Opened)]

    # the ports ---------------------------------------------------------------------------------------------------

    def identify(self, received: Received) -> Caller:
        if self.caller is None:
            raise Unauthenticated
        return self.caller

    def still_good(self, caller: Caller) -> bool:
        return self.good

    async def current(self, tenant_id: TenantId) -> Snapshot:
        await self.stop.here("policy")
        records = TenantRecords(
            tenant_id=tenant_id, revision=self.revision, providers=tuple(self.providers), models=tuple(self.models),
            ip_allowlist=self.allowlist, governance=self.governance, feature_flags=self.flags,
            model_access=self.model_access, budgets=self.budgets, routing_policies=self.routing_policies,
            allowed_fields=self.allowed_fields, model_aliases=self.model_aliases, mcp_servers=self.mcp_servers,
        )  # fmt: skip
        compiled = compile_policy(records)
        assert isinstance(compiled, Snapshot)
        return compiled

    async def take(self, key: str, limit: int, *, own_limit: int | None = None) -> RateDecision:
        await self.stop.here("counting")
        return await self._counters.take(key, limit, own_limit=own_limit)

    async def take_all(self, *claims: Claim) -> RateDecision:
        return await self._counters.take_all(*claims)

    def closed(self) -> Refusal | None:
        return None if self.in_maintenance is None else InMaintenance(self.in_maintenance)

    def switched_off(self, tenant_id: TenantId, candidate: Candidate) -> bool:
        return candidate.model.model_id in self.off

    def mcp_stopped(self, *ids: UUID) -> bool:
        return not self.mcp_off.isdisjoint(ids)

    def healthy(self, tenant_id: TenantId, provider_id: str) -> bool:
        return provider_id not in self.unhealthy

    async def in_touch(self) -> None:
        await self.stop.here("in touch")

    def up_to_date(self) -> bool:
        return True

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        return None

    async def reserve(
        self,
        budgets: Sequence[Budget],
        taking: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        await self.stop.here("reserving")
        return NothingReserved()

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None: ...

    async def decision(self, x: CallRequest, ask: Ask) -> ApprovalResult:
        self.approval_questions.append(ask)
        return "approved" if self.approves else "denied"

    def open(self, tenant_id: TenantId, key: str, sealed: str | None) -> Mapping[str, str]:
        return {} if sealed is None else {"api_key": sealed}

    def append(self, record: bytes) -> "asyncio.Future[None]":
        entry = decode_of_platform(record)
        if isinstance(entry, ToolCalled):
            self.tool_calls.append(entry)
        else:
            self.entries.append(decode(record))
        done = asyncio.get_running_loop().create_future()
        if self.stop.at == "recording":
            self.stop.reached.set()
        else:
            done.set_result(None)
        return done

    def full(self) -> bool:
        return self.journal_full


def completion(text: str = "Hello", *, usage: tuple[int, int] = (10, 5), **more: Any) -> bytes:
    """Return a complete answer in OpenAI's format."""
    return json.dumps(
        {
            "id": "c-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)},
            **more,
        }
    ).encode()  # fmt: skip


def events(*texts: str, usage: tuple[int, int] | None = (10, 5), done: bool = True) -> list[bytes | Exception]:
    """Return a streamed answer with one event in each piece."""

    def event(choices: list[Any], **more: Any) -> bytes:
        chunk = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
        return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"

    pieces: list[bytes | Exception] = [
        event([{"index": 0, "delta": {"content": text}, "finish_reason": None}]) for text in texts
    ]
    pieces.append(event([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    if usage is not None:
        tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        pieces.append(event([], usage=tokens))
    if done:
        pieces.append(b"data: [DONE]\n\n")
    return pieces
