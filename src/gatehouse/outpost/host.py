"""Creates and starts the parts of one outpost in order, and stops them in reverse order."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog

from gatehouse import __version__
from gatehouse.detection.service.client import DetectionClient
from gatehouse.engine.dlp.tiers import DlpOptions
from gatehouse.engine.dlp.turns import SCHEDULER
from gatehouse.engine.exchange import CallRequest
from gatehouse.engine.ports import Ports
from gatehouse.engine.run import Engine
from gatehouse.engine.verdict import ApprovalResult, Ask
from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock, iso
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.journal.writer import JournalWriter
from gatehouse.foundation.outbound.carriers import open_outbound
from gatehouse.foundation.response_cache.memory import MemoryCache
from gatehouse.foundation.secrets.owned_ids import OwnedIds
from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.tasks import cancel_all
from gatehouse.ingress.in_progress import InProgress
from gatehouse.outpost import durable_files
from gatehouse.outpost.child_process import ChildProcess
from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.metrics import OutpostMetrics
from gatehouse.outpost.money.budget import LocalSpend
from gatehouse.outpost.money.leases import Leases
from gatehouse.outpost.money.tally import Tally
from gatehouse.outpost.platform_link.client import PlatformClient
from gatehouse.outpost.platform_link.heartbeat import HeartbeatBody, HeartbeatSender
from gatehouse.outpost.platform_link.peer_tokens import Proof
from gatehouse.outpost.platform_link.peers import Peers
from gatehouse.outpost.policy.airgap import BundleFiles
from gatehouse.outpost.policy.bundle import BundleStore, InForce
from gatehouse.outpost.policy.credentials import LocalCredentials
from gatehouse.outpost.policy.follow import Follower
from gatehouse.outpost.policy.provider_credentials import LocalSecrets
from gatehouse.outpost.policy.switches import LocalSwitches
from gatehouse.outpost.rate_limits import LocalLimits
from gatehouse.outpost.records.disk import STEPS, DiskMonitor, ThinningJournal
from gatehouse.outpost.records.log import AuditLog
from gatehouse.outpost.records.positions import OutpostRecords
from gatehouse.outpost.records.siem import direct, receivers_of
from gatehouse.outpost.records.upload import RecordUpload
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import BudgetSet, LocalState
from gatehouse.outpost.stdio import LocalStdio
from gatehouse.policy.budgets import NANO
from gatehouse.policy.bundles.signing import BundleRefused
from gatehouse.policy.catalog import Overrides

log = structlog.get_logger(__name__)

_PURGE_SECONDS: Final = 60.0
_ID_KEY_FILE: Final = "response-ids.key"
_ID_KEY_BYTES: Final = 32
#: Maximum time by which loading the policy's models delays readiness.
_MODEL_LOADING_SECONDS: Final = 30.0


class OutpostApprovalUnavailable(Unavailable):
    code = "approval_unavailable"
    message = "This request needs the approval of a person, and an outpost does not support approvals."


class NoApprovals:
    """Implements the engine's `Approvals`. Approvers work at the platform, so every request that needs an approval is
    refused."""

    async def decision(self, x: CallRequest, ask: Ask) -> ApprovalResult:
        raise OutpostApprovalUnavailable


class OutpostHost:
    """All parts of one outpost. Create it in a running loop. Raises `BadSettings` for unusable settings."""

    def __init__(self, settings: OutpostSettings) -> None:
        assert settings.outpost_id is not None
        self.settings = settings
        self.id: UUID = settings.outpost_id
        self.clock: Clock = SYSTEM_CLOCK
        self.began = time.time()
        folder = _made_folder(settings)
        self.state = LocalState(folder)
        self.metrics = OutpostMetrics(settings.gatehouse_home)
        self.identity = _identity(settings)
        keys = self.identity.private_keys if self.identity is not None else tuple
        self.bundles = BundleStore(self.id, folder, self._activated, private_keys=keys)
        self.platform: PlatformClient | None = None
        self.follower: Follower | None = None
        self.files: BundleFiles | None = None
        if settings.outpost_airgap:
            assert settings.outpost_bundle_path is not None
            assert settings.outpost_keys_path is not None
            self.files = BundleFiles(self.bundles, settings.outpost_bundle_path, settings.outpost_keys_path)
        else:
            assert self.identity is not None
            assert settings.platform_management_url is not None
            self.platform = PlatformClient(
                settings.platform_management_url, self.identity, issuer=settings.platform_issuer
            )
            self.follower = Follower(self.platform, self.bundles)
        self.heartbeat: HeartbeatSender | None = None
        if self.identity is not None and settings.cloud_portal_url is not None and not settings.outpost_airgap:
            self.heartbeat = HeartbeatSender(
                settings.cloud_portal_url, self.identity, self._heartbeat_body, issuer=settings.portal_issuer
            )
        self.detection = ChildProcess("gatehouse.detection.service")
        self.stdio = LocalStdio(folder, settings.mcp_stdio_commands)
        self._loading: asyncio.Task[None] | None = None
        self.detectors = DetectionClient(
            settings.gatehouse_home,
            budget=settings.dlp_tier_timeout_ms / 1000,
            queue=settings.detection_queue,
            on_failure=self.metrics.tier_failed,
            begin=self.detection.start,
        )
        self.calls = InProgress()
        self.counters = MemoryCounters(self.clock)
        self.cache = MemoryCache(settings.cache_max_bytes, self.clock)
        self.spend, self.peers = self._make_budget(folder)
        guard = EgressGuard(settings.egress_allowlist, settings.egress_policy)
        self.outbound = open_outbound(
            settings.outbound,
            settings.provider_max_connections,
            guard,
            max_per_provider=settings.connections_per_provider,
        )
        self.journal = _journal(settings)
        audit = AuditLog(
            folder / "audit", max_bytes=settings.log_rotation_max_size, max_files=settings.log_rotation_max_files
        )
        self.records = OutpostRecords(folder, audit)
        self.upload = None if self.platform is None else RecordUpload(self.platform, self.records)
        self.receivers = receivers_of(settings)
        self.siem = direct(settings, self.receivers, self.records)
        self.disk = DiskMonitor(
            settings.gatehouse_home,
            self.records,
            threshold=settings.disk_monitor_threshold,
            interval=settings.disk_monitor_check_interval,
        )
        self.ports = Ports(
            credentials=LocalCredentials(self.bundles, self.id, settings.outpost_jwt_secret),
            policies=self.bundles,
            limits=LocalLimits(settings),
            counters=self.counters,
            switches=LocalSwitches(self.bundles, self.state),
            spend=self.spend,
            approvals=NoApprovals(),
            secrets=LocalSecrets(self.bundles),
            journal=ThinningJournal(self.journal, self.disk.status),
            outbound=self.outbound,
            clock=self.clock,
            stdio=self.stdio.client,
            meter=self.metrics,
            detectors=self.detectors,
            dlp=DlpOptions(
                fail_mode=settings.dlp_fail_mode,
                stream_mode=settings.dlp_stream_mode,
                unreadable=settings.dlp_unreadable,
                document_seconds=settings.dlp_document_timeout_ms / 1000,
                block_status=settings.dlp_block_status,
                prompt_timeout_seconds=settings.dlp_prompt_timeout_seconds,
                pattern_work_seconds=settings.dlp_pattern_work_seconds,
                pattern_timeout_seconds=settings.dlp_pattern_timeout_seconds,
            ),
            cache=self.cache,
            owned_ids=OwnedIds([_id_key(folder)]),
            unknown_fields=settings.unknown_fields,
            max_response_bytes=settings.max_response_bytes,
            tool_run_max_cost_usd=settings.tool_run_max_cost_usd,
            request_deadline_seconds=settings.request_deadline_seconds,
            circuit_failures=settings.circuit_failures,
            circuit_seconds=settings.circuit_seconds,
        )
        SCHEDULER.threads = settings.dlp_threads
        self.engine = Engine(self.ports)
        self._parts = contextlib.AsyncExitStack()

    @property
    def ready(self) -> bool:
        """Returns whether new requests should be routed to this outpost."""
        return not self.faults()

    def faults(self) -> list[str]:
        """Returns the reasons why new requests should not be routed to this outpost."""
        conditions = {
            "no policy bundle is loaded": self.bundles.in_force is None,
            "the models that the policy needs are being loaded": self._is_loading(),
            "the kill switch is engaged": self.state.stopped,
            "the journal is full": self.journal.full(),
        }
        return [fault for fault, active in conditions.items() if active]

    def _is_loading(self) -> bool:
        return self._loading is not None and not self._loading.done()

    async def start(self) -> None:
        """Starts the parts. If one of them raises an error, stops the parts that have been started and raises the
        error."""
        async with contextlib.AsyncExitStack() as parts:
            self._prepare(parts)
            await self._start(parts)
            self._parts = parts.pop_all()

    async def stop(self) -> None:
        """Stops the parts in reverse order of their start."""
        await self._parts.aclose()

    def _prepare(self, parts: contextlib.AsyncExitStack) -> None:
        """Starts the parts that all other parts need. They are stopped last."""
        self._publish_metrics()
        self.metrics.exporter.start()
        parts.push_async_callback(self.metrics.exporter.stop)
        if self.platform is not None:
            parts.push_async_callback(self.platform.close)
        parts.callback(self.records.close)
        parts.push_async_callback(self.receivers.close)
        # SIEM and upload are started before all parts that write records, and stopped after the journal is closed, so
        # that they forward its last records.
        if self.siem is not None:
            self.siem.start()
            parts.push_async_callback(self.siem.stop)
        if self.upload is not None:
            self.upload.start()
            parts.push_async_callback(self.upload.stop)
        parts.push_async_callback(self.journal.close)
        parts.push_async_callback(self.outbound.close)
        parts.push_async_callback(self.detection.stop)
        self.stdio.start()
        parts.push_async_callback(self.stdio.stop)

    async def _start(self, parts: contextlib.AsyncExitStack) -> None:
        await self.bundles.set_overrides(self.state.current.overrides, budget=self.spend.set)
        if self.files is not None:
            self.files.trust()
        parts.push_async_callback(self._stop_loading)
        await self.bundles.load_kept()
        if self.files is not None:
            await self.files.start()
            parts.push_async_callback(self.files.stop)
        await self.detectors.start()
        parts.push_async_callback(self.detectors.stop)
        if self.follower is not None:
            self.follower.start()
            parts.push_async_callback(self.follower.stop)
        if self.heartbeat is not None:
            self.heartbeat.start()
            parts.push_async_callback(self.heartbeat.stop)
        self.disk.start()
        parts.push_async_callback(self.disk.stop)
        self.spend.start()
        parts.push_async_callback(self.spend.stop)
        self.peers.start()
        parts.push_async_callback(self.peers.stop)
        purging = asyncio.create_task(self._purge(), name="purge")
        parts.push_async_callback(cancel_all, purging)
        # Stopped first, because their calls use all other parts.
        parts.push_async_callback(self.engine.stop)

    async def override(
        self, *, disabled: Mapping[str, frozenset[str]] | None = None, routes: Mapping[str, str] | None = None
    ) -> None:
        """Replaces overrides, except those for which None is passed. When this method returns, the overrides are stored
        and active. If it raises `OSError`, nothing has changed. The caller holds `state.change_lock`."""
        previous = self.state.current.overrides
        overrides = Overrides(
            disabled=previous.disabled if disabled is None else disabled,
            routes=previous.routes if routes is None else routes,
        )
        await self.state.change(overrides=overrides)
        try:
            await self.bundles.set_overrides(overrides)
        except BundleRefused:
            await self.state.change(overrides=previous)
            raise
        log.warning("outpost.overrides_set", disabled=len(overrides.disabled), routes=len(overrides.routes))

    async def set_budget(self, budget: BudgetSet) -> None:
        """Replaces the budget. When this method returns, the budget is stored and active. If it raises `OSError`,
        nothing has changed. The caller holds `state.change_lock`."""
        previous = self.state.current.budget
        await self.state.change(budget=budget)
        try:
            await self.bundles.set_overrides(budget=budget)
        except BundleRefused:
            await self.state.change(budget=previous)
            raise
        log.warning("outpost.budget_set", **shown_budget(budget))

    def _make_budget(self, folder: Path) -> tuple[LocalSpend, Peers]:
        settings = self.settings
        leases = Leases(folder / "share.json", parts=len(settings.peers) + 1, place=settings.place)
        tally = Tally(folder / "spent", self.clock.now())
        spend = LocalSpend(self.id, settings, self.state, tally=tally, leases=leases, clock=self.clock)
        peers = Peers(
            self.id,
            settings.peers,
            proof=_proof(settings, self.identity),
            identity=self.identity,
            leases=leases,
            spend=spend,
            state=self.state,
            version=self._version,
            newer=self._poll_now,
        )
        spend.peers = peers
        return spend, peers

    def _version(self) -> int:
        return 0 if self.bundles.in_force is None else self.bundles.in_force.bundle.version

    def _poll_now(self) -> None:
        if self.follower is not None:
            self.follower.poll_now()

    def _activated(self, in_force: InForce) -> None:
        """Publishes the metrics of a bundle that is now active, ends obsolete processes of MCP servers, and loads the
        models that its rules need, so that no request waits for them."""
        bundle, snapshot = in_force.bundle, in_force.snapshot
        self.stdio.activated(bundle)
        self.metrics.policy_version.read(lambda: bundle.version)
        self.metrics.policy_age.read(lambda: time.time() - bundle.issued_at)
        needs_loading = snapshot.dlp.entities and self.detectors.need("ner")
        if snapshot.dlp.labels or any(content_filter.topics for content_filter in snapshot.filters.filters):
            needs_loading = self.detectors.need("llm") or needs_loading
        if needs_loading and not self._is_loading():
            self._loading = asyncio.create_task(self._load_models(), name="models")

    async def _stop_loading(self) -> None:
        if self._loading is not None:
            await cancel_all(self._loading)

    async def _load_models(self) -> None:
        if missing := await self.detectors.loaded(_MODEL_LOADING_SECONDS):
            log.warning("models.not_loaded", tiers=missing, seconds=_MODEL_LOADING_SECONDS)

    def _publish_metrics(self) -> None:
        metrics, journal = self.metrics, self.journal
        metrics.journal_bytes.read(journal.size_bytes)
        metrics.journal_half_full.read(journal.half_full)
        if (upload := self.upload) is not None:
            metrics.records_handed_in.read(lambda: upload.status.handed_in)
            metrics.records_rejected.read(lambda: upload.status.rejected)
            metrics.records_lost.read(lambda: upload.status.lost)
        if (siem := self.siem) is not None:
            metrics.siem_sent.read(lambda: siem.status.sent)
            metrics.siem_waiting.read(lambda: siem.status.waiting_bytes)
            metrics.siem_failing.read(lambda: siem.status.fault is not None)
        metrics.disk_used.read(lambda: self.disk.status.percent or 0.0)
        metrics.disk_shed.read(lambda: STEPS.index(self.disk.status.shed))
        metrics.entries_thinned.read(lambda: self.disk.status.entries_thinned)
        metrics.semantic_queue.read(lambda: self.detectors.waiting("llm"))
        metrics.cache_bytes.read(lambda: self.cache.bytes)
        metrics.active_calls.read(lambda: self.calls.count)
        metrics.read_circuits(self.engine.circuits)
        if (follower := self.follower) is not None:
            metrics.platform_silence.read(lambda: time.time() - (follower.heard_at or self.began))
        spend = self.spend
        metrics.budget_spent.read(lambda: spend.spent(spend.month().start)[0] / NANO)
        metrics.budget_share.read(lambda: (spend.share(spend.month().start)[0] or 0) / NANO)
        metrics.peers_away.read(lambda: sum(peer.fault is not None for peer in self.peers.all))
        if (identity := self.identity) is not None:
            metrics.outpost_certificates.read(lambda: identity.expires_at, (str(self.id),))

    def _heartbeat_body(self) -> HeartbeatBody:
        in_force = self.bundles.in_force
        return HeartbeatBody(
            version=__version__,
            status="ready" if self.ready else "not_ready",
            journal_bytes=self.journal.size_bytes(),
            bundle_version=None if in_force is None else in_force.bundle.version,
        )

    async def _purge(self) -> None:
        while True:
            await asyncio.sleep(_PURGE_SECONDS)
            self.counters.purge()


def shown_budget(budget: BudgetSet) -> dict[str, str | int | None]:
    """Returns a budget in the form of the log and of the audit log."""
    return {
        "monthly_usd": None if budget.usd is None else str(budget.usd),
        "monthly_requests": budget.requests,
        "expires_at": None if budget.expires_at is None else iso(budget.expires_at),
    }


def _made_folder(settings: OutpostSettings) -> Path:
    """Returns the outpost's folder. Creates it if it does not exist. Raises `BadSettings`."""
    try:
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadSettings(f"GATEHOUSE_HOME: cannot be written ({error})") from None
    return settings.folder


def _id_key(folder: Path) -> bytes:
    """Returns the outpost's key for ids of responses that providers keep. Creates it at the first start. Raises
    `BadSettings`."""
    path = folder / _ID_KEY_FILE
    key = durable_files.read(path)
    if key is None or len(key) != _ID_KEY_BYTES:
        key = secrets.token_bytes(_ID_KEY_BYTES)
        try:
            durable_files.write(path, key)
        except OSError as error:
            raise BadSettings(f"GATEHOUSE_HOME: {path} cannot be written ({error})") from None
    return key


def _journal(settings: OutpostSettings) -> JournalWriter:
    folder = settings.folder / "journal"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return JournalWriter(folder, sync=settings.journal_sync, max_bytes=settings.journal_max_bytes)


def _proof(settings: OutpostSettings, identity: OutpostIdentity | None) -> Proof | None:
    """Returns the authentication between peers, or None if the outpost has no peers."""
    if not settings.peers:
        return None
    assert settings.outpost_id is not None
    assert identity is not None
    assert settings.tls_ca_bundle is not None
    return Proof(settings.outpost_id, identity, settings.tls_ca_bundle)


def _identity(settings: OutpostSettings) -> OutpostIdentity | None:
    """Returns the outpost's identity, or None if it has no certificate. A certificate is optional in an air gap."""
    if settings.tls_cert_path is None or settings.tls_key_path is None:
        return None
    return OutpostIdentity.of(settings)
