"""The parts of one worker. They are created and started in order, and stopped in reverse order."""

import asyncio
import contextlib
import hashlib
from typing import Final

import structlog

from gatehouse.detection.service.client import DetectionClient
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.mcp.stdio.client import StdioClient, open_client
from gatehouse.engine.measures import tokenizers
from gatehouse.engine.measures.latency import Latencies
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.rate_limits.selection import PathLimits
from gatehouse.engine.run import Engine
from gatehouse.engine.stages.calls import sampling
from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.egress.dns import SystemResolver, TxtResolver
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.http.lists import CursorSigner
from gatehouse.foundation.journal.writer import JournalWriter
from gatehouse.foundation.outbound import Outbound
from gatehouse.foundation.outbound.carriers import open_outbound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.processes.children import SharedFlag
from gatehouse.foundation.processes.shared_times import SharedTimes
from gatehouse.foundation.response_cache.memory import MemoryCache
from gatehouse.foundation.response_cache.shared import RedisCache
from gatehouse.foundation.secrets.owned_ids import OwnedIds
from gatehouse.foundation.secrets.passwords import Passwords
from gatehouse.foundation.secrets.sealing import MasterKeys, Sealer
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import cancel_all
from gatehouse.ingress.in_progress import InProgress
from gatehouse.platform.access.signing import Signer
from gatehouse.platform.background.tasks import BackgroundTasks
from gatehouse.platform.batches.running.runner import BatchRunner
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.governance.dlp_samples.contents import SealingSampler
from gatehouse.platform.live.approvals import LiveApprovals
from gatehouse.platform.live.credentials import LiveCredentials
from gatehouse.platform.live.latencies import SharedLatencies
from gatehouse.platform.live.nodes import Node
from gatehouse.platform.live.ports import LiveSwitches, SealedSecrets
from gatehouse.platform.live.replica.feed import Feed
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.live.tries import TryCounters
from gatehouse.platform.live.uses import UseWriter
from gatehouse.platform.mcp.connections.authorization_servers import AuthorizationServers
from gatehouse.platform.mcp.connections.tokens import LiveUserTokens
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.platform.publishing.outposts import Supply
from gatehouse.platform.publishing.snapshots import Publisher
from gatehouse.platform.request.ports import OutpostSupply, Startup, TokenSigner
from gatehouse.platform.spending.spender import Spender
from gatehouse.platform.tracing.exporter import Exporter
from gatehouse.policy.snapshot import Snapshot

log = structlog.get_logger(__name__)

#: Interval at which expired rate-limit counts are purged.
_PURGE_INTERVAL_SECONDS: Final = 60.0
#: Time before the end of `DRAIN_SECONDS` at which requests that still wait for an approval are answered.
_RELEASE_SECONDS: Final = 2.0
#: Time limit for loading the detection models. After this time, a worker serves without those that are still not
#: loaded.
_MODEL_LOAD_TIMEOUT_SECONDS: Final = 30.0


class PlatformHost:
    """All parts of one worker. `master_keys` seal secrets at rest; the key that signs list cursors is derived from the
    current master key. `detecting` is raised once a worker needs the detection process.
    `shared_cooldowns` is memory that the workers of this machine share."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        master_keys: MasterKeys,
        *,
        detecting: SharedFlag | None = None,
        shared_cooldowns: SharedTimes | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.sealer = Sealer(master_keys.keys, master_keys.current)
        self.cursors = CursorSigner(
            hashlib.sha256(b"gatehouse list cursors" + master_keys.keys[master_keys.current]).digest()
        )
        self._owned_ids = OwnedIds.of_master_keys(master_keys)
        self.clock: Clock = SYSTEM_CLOCK
        self.issuer = settings.public_url or "gatehouse"
        self.replica = Replica()
        self.startup = Startup(self.clock.monotonic())
        self.metrics = PlatformMetrics(settings.gatehouse_home)
        self.node = Node(database)
        self.node.report = lambda: {"active": self.calls.count}
        self.policies = Publisher(database, self._activated)
        detecting = SharedFlag() if detecting is None else detecting
        self._shared_cooldowns = SharedTimes() if shared_cooldowns is None else shared_cooldowns
        self.detectors = DetectionClient(
            settings.gatehouse_home,
            budget=settings.dlp_tier_timeout_ms / 1000,
            queue=settings.detection_queue,
            on_failure=self.metrics.tier_failed,
            begin=detecting.up,
            begun=lambda: bool(detecting),
        )
        self.feed = Feed(
            database,
            self.replica,
            self.node,
            self.policies.changed,
            fail_closed=settings.switch_fail_mode == "closed",
        )
        self.credentials = LiveCredentials(
            self.replica, issuer=self.issuer, enforce_scopes=settings.oauth_scope_enforcement
        )
        self.uses = UseWriter(database, self.credentials.uses, self.clock)
        self.approvals = LiveApprovals(database, self.node, self.replica, seconds=settings.dlp_prompt_timeout_seconds)
        self.spender = Spender(database, self.clock, self.metrics)
        self.latencies = Latencies(self.clock)
        self.shared_latencies = SharedLatencies(database, self.latencies, self.node.id)
        self.traces = (
            Exporter(settings, self.clock, self.metrics.spans_exported, self.metrics.spans_dropped)
            if settings.otel_exporter_otlp_endpoint
            else None
        )
        self.passwords = Passwords()
        self.signer: TokenSigner = Signer(database, self.sealer, self.replica, self.clock, issuer=self.issuer)
        self._supply = Supply(database, self.replica, self.sealer, self.metrics.outpost_certificates)
        self.supply: OutpostSupply = self._supply
        self.later = BackgroundTasks()
        self.calls = InProgress()
        self.limits = PathLimits(settings)
        self._local = MemoryCounters(self.clock)
        self.counters: Counters = RedisCounters(settings.redis_url, self._local) if settings.redis_url else self._local
        self.tries = TryCounters(database, self.clock)
        self.cache: MemoryCache | RedisCache
        if settings.redis_url:
            secret = hashlib.sha256(b"gatehouse response cache" + master_keys.keys[master_keys.current]).digest()
            self.cache = RedisCache(settings.redis_url, secret, settings.cache_max_bytes)
        else:
            self.cache = MemoryCache(settings.cache_max_bytes, self.clock)
        guard = EgressGuard(settings.egress_allowlist, settings.egress_policy)
        self.outbound: Outbound = open_outbound(
            settings.outbound,
            settings.provider_max_connections,
            guard,
            max_per_provider=settings.connections_per_provider,
        )
        self.stdio = _open_stdio(settings, self.replica)
        self.receivers = Receivers(guard)
        self.resolver: TxtResolver = SystemResolver()
        self._parts = contextlib.AsyncExitStack()
        self.journal: JournalWriter
        self.engine: Engine
        self.batches: BatchRunner
        self.ports: Ports

    def _activated(self, snapshot: Snapshot) -> None:
        """Load the models that the rules of the snapshot need, so that no request waits for them."""
        if snapshot.dlp.entities:
            self.detectors.need("ner")
        if snapshot.dlp.labels or any(content_filter.topics for content_filter in snapshot.filters.filters):
            self.detectors.need("llm")

    def build(self) -> None:
        """Create the parts that need a running event loop: the journal and the engine."""
        journal = self.settings.gatehouse_home / "journal"
        journal.mkdir(parents=True, exist_ok=True)
        self.journal = JournalWriter(
            journal, sync=self.settings.journal_sync, max_bytes=self.settings.journal_max_bytes
        )
        self.user_tokens = LiveUserTokens(
            self.database,
            self.sealer,
            self.replica,
            clock=self.clock,
            servers=AuthorizationServers(self.outbound, self.receivers.guard),
            public_url=self.settings.public_url,
        )
        self.ports = Ports(
            credentials=self.credentials,
            policies=self.policies,
            limits=self.limits,
            counters=self.counters,
            switches=LiveSwitches(self.replica, self.feed),
            spend=self.spender,
            approvals=self.approvals,
            secrets=SealedSecrets(self.sealer),
            journal=self.journal,
            outbound=self.outbound,
            clock=self.clock,
            public_url=None if self.settings.public_url is None else self.settings.public_url.rstrip("/"),
            latencies=self.latencies,
            stdio=self.stdio,
            meter=self.metrics,
            traces=self.traces,
            user_tokens=self.user_tokens,
            sampler=SealingSampler(self.sealer),
            detectors=self.detectors,
            dlp=DlpOptions(
                fail_mode=self.settings.dlp_fail_mode,
                stream_mode=self.settings.dlp_stream_mode,
                unreadable=self.settings.dlp_unreadable,
                document_seconds=self.settings.dlp_document_timeout_ms / 1000,
                block_status=self.settings.dlp_block_status,
                prompt_timeout_seconds=self.settings.dlp_prompt_timeout_seconds,
                pattern_work_seconds=self.settings.dlp_pattern_work_seconds,
                pattern_timeout_seconds=self.settings.dlp_pattern_timeout_seconds,
            ),
            cache=self.cache,
            owned_ids=self._owned_ids,
            unknown_fields=self.settings.unknown_fields,
            max_response_bytes=self.settings.max_response_bytes,
            tool_run_max_cost_usd=self.settings.tool_run_max_cost_usd,
            request_deadline_seconds=self.settings.request_deadline_seconds,
            circuit_failures=self.settings.circuit_failures,
            circuit_seconds=self.settings.circuit_seconds,
            shared_cooldowns=self._shared_cooldowns,
        )
        SCHEDULER.threads = self.settings.dlp_threads
        self.engine = Engine(self.ports)
        self.batches = BatchRunner(self)
        self._publish_metrics()

    def _publish_metrics(self) -> None:
        metrics, journal, database = self.metrics, self.journal, self.database
        metrics.pool_available.read(database.available_connections)
        metrics.pool_max.read(lambda: database.pool_size)
        metrics.journal_bytes.read(journal.size_bytes)
        metrics.journal_half_full.read(journal.half_full)
        metrics.semantic_queue.read(lambda: self.detectors.waiting("llm"))
        metrics.cache_bytes.read(lambda: self.cache.bytes)
        metrics.active_calls.read(lambda: self.calls.count)
        metrics.read_circuits(self.engine.circuits)
        metrics.feed_lag.read(lambda: self.feed.lag_seconds)
        if isinstance(counters := self.counters, RedisCounters):
            metrics.redis_degraded.read(lambda: counters.degraded)
            metrics.redis_local_takes.read(lambda: counters.degraded_total)

    async def start(self) -> None:
        """Start all parts. If one of them raises, the parts that were started before are stopped and the exception
        propagates."""
        async with contextlib.AsyncExitStack() as parts:
            await self._open_parts(parts)
            await self._start_parts(parts)
            self._parts = parts.pop_all()
        self.startup.done(self.clock.monotonic())

    async def _open_parts(self, parts: contextlib.AsyncExitStack) -> None:
        """Open the parts that other parts use. They are closed last."""
        parts.push_async_callback(self.database.close)
        self.metrics.exporter.start()
        parts.push_async_callback(self.metrics.exporter.stop)
        for shared in (self.cache, self.counters):
            if isinstance(shared, RedisCache | RedisCounters):
                parts.push_async_callback(shared.close)
                await shared.start()
        parts.push_async_callback(cancel_all, asyncio.create_task(self._purge(), name="purge"))
        parts.callback(self.passwords.close)
        parts.push_async_callback(self.journal.close)
        parts.push_async_callback(self.receivers.close)
        parts.push_async_callback(self.outbound.close)
        if self.stdio is not None:
            parts.push_async_callback(self.stdio.stop)

    async def _start_parts(self, parts: contextlib.AsyncExitStack) -> None:
        parts.push_async_callback(self.detectors.stop)
        await self.detectors.start()
        parts.push_async_callback(self._supply.close)
        self.startup.phase = "database"
        parts.push_async_callback(self.feed.stop)
        await self.feed.start()
        await self.approvals.start()
        parts.push_async_callback(self.approvals.stop)
        await self.spender.start(self.journal.writer_id)
        parts.push_async_callback(self.spender.stop)
        await self.shared_latencies.start()
        parts.push_async_callback(self.shared_latencies.stop)
        parts.push_async_callback(self.user_tokens.stop)
        self.uses.start()
        parts.push_async_callback(self.uses.stop)
        if self.traces is not None:
            await self.traces.start()
            parts.push_async_callback(self.traces.stop)
        parts.push_async_callback(self.later.settle)
        if (vocabularies := self.settings.tiktoken_cache_dir) is not None:
            await asyncio.to_thread(tokenizers.load, vocabularies)
        await self.signer.open()
        self.startup.phase = "policies"
        await self.policies.preload(DEFAULT_TENANT)
        self.startup.phase = "models"
        if missing := await self.detectors.loaded(_MODEL_LOAD_TIMEOUT_SECONDS):
            log.warning("models.not_loaded", tiers=missing, seconds=_MODEL_LOAD_TIMEOUT_SECONDS)
        # Samples are written to the journal after the end of their requests.
        parts.push_async_callback(sampling.wait)
        # Stopped first, because their calls use all other parts. Calls of batches are calls of the engine.
        parts.push_async_callback(self.engine.stop)
        parts.push_async_callback(self.batches.stop)
        self.batches.start()

    def drain(self) -> None:
        """Answer all long polls now, and accept no new ones. Start no more lines of batches. Requests that wait for an
        approval are answered shortly before `DRAIN_SECONDS` have passed, when the server cancels the remaining
        requests."""
        self.replica.news.close()
        self.batches.drain()
        wait = max(self.settings.drain_seconds - _RELEASE_SECONDS, 0)
        asyncio.get_running_loop().call_later(wait, self.approvals.release)

    async def stop(self) -> None:
        """Stop all parts in reverse order of the start."""
        await self._parts.aclose()

    async def _purge(self) -> None:
        """Purge expired counts at intervals. Counting a request purges them too, but after a flood no further request
        may come."""
        while True:
            await asyncio.sleep(_PURGE_INTERVAL_SECONDS)
            self._local.purge()


def _open_stdio(settings: Settings, replica: Replica) -> StdioClient | None:
    """Return the client of the stdio servers, which ends the processes of changed servers; None without commands."""
    client = open_client(settings.gatehouse_home, settings.mcp_stdio_commands)
    if client is not None:
        replica.stdio_changed = client.end_obsolete
    return client
