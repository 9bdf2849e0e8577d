"""How this outpost is: one look for an operator, or for whatever watches it."""

import time
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from gatehouse import __version__
from gatehouse.foundation.clock import iso
from gatehouse.foundation.http.bodies import Shown
from gatehouse.outpost.admin.access import Operated
from gatehouse.outpost.admin.budget import BudgetState, budget_state
from gatehouse.outpost.admin.overrides import KillSwitchState, kill_switch
from gatehouse.outpost.host import OutpostHost

router = APIRouter(tags=["Status"])

Time = Annotated[str | None, Field(examples=["2026-05-04T12:00:00Z"])]


class PolicyStatus(Shown):
    version: Annotated[int | None, Field(description="Of the bundle in force; null while there is none.")]
    source: Annotated[str | None, Field(description="`platform`, `file` or `kept`.")]
    issued_at: Time
    expires_at: Time
    age_seconds: Annotated[int | None, Field(description="Since the platform has issued it.")]
    expired: Annotated[
        bool,
        Field(description="It stays in force: an old policy is better than none. It is time to fetch a newer one."),
    ]
    asked_at: Time
    fetched_at: Time
    activated_at: Time
    failed_at: Time
    fault: Annotated[str | None, Field(description="Why the last one that came was refused.")]
    credentials_unopened: Annotated[
        list[str], Field(description="Providers whose credentials are sealed to a key that is not this outpost's.")
    ]


class PlatformStatus(Shown):
    url: str
    heard_at: Time
    fault: Annotated[str | None, Field(description="Why it gives no answer, while it does not.")]


class PortalStatus(Shown):
    url: str
    taken_at: Annotated[Time, Field(description="The last heartbeat that it has taken.")]
    fault: Annotated[str | None, Field(description="Why it takes none, while it does not.")]


class CertificateStatus(Shown):
    serial: str
    expires_at: str


class JournalStatus(Shown):
    """`handed_in`, `rejected` and `lost` count from the start on; null in an air gap, as the rest of what is about the
    platform."""

    bytes: Annotated[int, Field(description="Not handed in yet; freed in parts of up to 8 MiB.")]
    full: bool
    handed_in: int | None
    handed_in_at: Time
    rejected: Annotated[int | None, Field(description="Taken for no records; the audit log has them.")]
    lost: Annotated[int | None, Field(description="Damaged, or asked for again and not kept any more.")]
    fault: Annotated[str | None, Field(description="Why nothing is handed in, while it is so.")]


class DiskStatus(Shown):
    used_percent: float | None
    threshold_percent: int
    shed: Annotated[
        str, Field(description="`nothing`, `audit_files`, `audit_lines`, `journal_detail`: one after the other.")
    ]
    files_removed: int
    entries_thinned: int


class SiemStatus(Shown):
    type: str
    sent: Annotated[int, Field(description="Events since the start.")]
    sent_at: Time
    skipped: Annotated[int, Field(description="Events that are too large for the receiver even alone.")]
    waiting_bytes: Annotated[int, Field(description="Of the journal, not sent yet.")]
    fault: Annotated[str | None, Field(description="Why it takes nothing, while it is so.")]


class CircuitState(Shown):
    provider: str
    model: Annotated[str | None, Field(description="Null: the provider's connections.")]
    state: Annotated[str, Field(description="`open`, or `half_open` once one request may try again.")]
    failures: Annotated[int, Field(description="In a row.")]


class Status(Shown):
    outpost_id: str
    tenant_id: str | None
    version: Annotated[str, Field(description="Of the software.")]
    started_at: str
    ready: bool
    policy: PolicyStatus
    platform: Annotated[PlatformStatus | None, Field(description="Null in an air gap.")]
    portal: Annotated[PortalStatus | None, Field(description="Null in an air gap, and without `CLOUD_PORTAL_URL`.")]
    certificate: CertificateStatus | None
    kill_switch: KillSwitchState
    budget: Annotated[BudgetState, Field(description="With the peers that share it.")]
    journal: JournalStatus
    disk: DiskStatus
    siem: Annotated[SiemStatus | None, Field(description="Null without `SIEM_DIRECT_TYPE`.")]
    circuits: Annotated[list[CircuitState], Field(description="Models and providers that are left alone.")]


@router.get("/admin/api/status", response_model=Status)
async def read_status(host: Operated) -> Status:
    held = host.bundles.in_force
    identity = host.identity
    return Status(
        outpost_id=str(host.id),
        tenant_id=None if held is None else str(held.bundle.tenant_id),
        version=__version__,
        started_at=iso(host.began),
        ready=host.ready,
        policy=_policy(host),
        platform=_platform(host),
        portal=_portal(host),
        certificate=None
        if identity is None
        else CertificateStatus(serial=identity.serial, expires_at=iso(identity.expires_at)),
        kill_switch=kill_switch(host),
        budget=budget_state(host),
        journal=_journal(host),
        disk=_disk(host),
        siem=_siem(host),
        circuits=_circuits(host),
    )


def _circuits(host: OutpostHost) -> list[CircuitState]:
    in_force = host.bundles.in_force
    if in_force is None:
        return []
    by_provider = host.engine.circuits.open_of(in_force.bundle.tenant_id)
    return [
        CircuitState(provider=provider, model=circuit.model, state=circuit.state, failures=circuit.failures)
        for provider, circuits in by_provider.items()
        for circuit in circuits
    ]


def _policy(host: OutpostHost) -> PolicyStatus:
    status, held = host.bundles.status, host.bundles.in_force
    bundle = None if held is None else held.bundle
    return PolicyStatus(
        version=None if bundle is None else bundle.version,
        source=status.source,
        issued_at=_time(None if bundle is None else bundle.issued_at),
        expires_at=_time(None if bundle is None else bundle.expires_at),
        age_seconds=None if bundle is None else max(0, int(time.time() - bundle.issued_at)),
        expired=bundle is not None and bundle.expires_at <= time.time(),
        asked_at=_time(status.asked),
        fetched_at=_time(status.fetched),
        activated_at=_time(status.activated),
        failed_at=_time(status.failed),
        fault=status.fault,
        credentials_unopened=[] if held is None else list(held.credentials.unopened),
    )


def _platform(host: OutpostHost) -> PlatformStatus | None:
    follower = host.follower
    if follower is None or host.settings.platform_management_url is None:
        return None
    return PlatformStatus(
        url=host.settings.platform_management_url, heard_at=_time(follower.heard), fault=follower.fault
    )


def _journal(host: OutpostHost) -> JournalStatus:
    said = None if host.upload is None else host.upload.status
    return JournalStatus(
        bytes=host.journal.size_bytes(),
        full=host.journal.full(),
        handed_in=None if said is None else said.handed_in,
        handed_in_at=_time(None if said is None else said.at),
        rejected=None if said is None else said.rejected,
        lost=None if said is None else said.lost,
        fault=None if said is None else said.fault,
    )


def _disk(host: OutpostHost) -> DiskStatus:
    said = host.disk.status
    return DiskStatus(
        used_percent=None if said.percent is None else round(said.percent, 1),
        threshold_percent=host.settings.disk_monitor_threshold,
        shed=said.shed,
        files_removed=said.files_removed,
        entries_thinned=said.entries_thinned,
    )


def _siem(host: OutpostHost) -> SiemStatus | None:
    if host.siem is None:
        return None
    status = host.siem.status
    return SiemStatus(
        type=host.siem.type,
        sent=status.sent,
        sent_at=_time(status.at),
        skipped=status.skipped,
        waiting_bytes=status.waiting_bytes,
        fault=status.fault,
    )


def _portal(host: OutpostHost) -> PortalStatus | None:
    heartbeat, url = host.heartbeat, host.settings.cloud_portal_url
    if heartbeat is None or url is None:
        return None
    return PortalStatus(url=url, taken_at=_time(heartbeat.taken), fault=heartbeat.fault)


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)
