"""The outpost's status for operators and monitoring."""

import time
from typing import Annotated

import msgspec
from fastapi import APIRouter
from pydantic import Field

from gatehouse import __version__
from gatehouse.foundation.clock import iso
from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.outpost.admin.access import AuthorizedHost
from gatehouse.outpost.admin.budget import BudgetState, budget_state
from gatehouse.outpost.admin.overrides import KillSwitchState, kill_switch
from gatehouse.outpost.host import OutpostHost

router = APIRouter(tags=["Status"])

Time = Annotated[str | None, Field(examples=["2026-05-04T12:00:00Z"])]


class PolicyStatus(ResponseBody):
    version: Annotated[int | None, Field(description="Version of the active bundle; null without a bundle.")]
    source: Annotated[str | None, Field(description="`platform`, `file` or `kept`.")]
    issued_at: Time
    expires_at: Time
    age_seconds: Annotated[int | None, Field(description="Time since the platform issued the bundle.")]
    expired: Annotated[
        bool,
        Field(description="Whether the bundle has expired. It stays active until a newer one arrives."),
    ]
    asked_at: Time
    fetched_at: Time
    activated_at: Time
    failed_at: Time
    fault: Annotated[str | None, Field(description="Why the last received bundle was refused.")]
    credentials_unopened: Annotated[
        list[str], Field(description="Names of credentials that are sealed for another key than this outpost's.")
    ]
    mcp_servers_left_out: Annotated[
        list[str], Field(description="MCP servers that the bundle does not contain, because their tools are too large.")
    ]


class PlatformStatus(ResponseBody):
    url: str
    heard_at: Time
    fault: Annotated[str | None, Field(description="Why the platform cannot be reached; null if it responds.")]


class PortalStatus(ResponseBody):
    url: str
    taken_at: Annotated[Time, Field(description="Time at which the portal last accepted a heartbeat.")]
    fault: Annotated[str | None, Field(description="Why the last heartbeat failed; null if it was accepted.")]


class CertificateStatus(ResponseBody):
    serial: str
    expires_at: str


class JournalStatus(ResponseBody):
    """The journal and its upload. `handed_in`, `rejected` and `lost` count records since the start. The fields about
    the upload are null in an air gap."""

    bytes: Annotated[int, Field(description="Size of records not uploaded yet; freed in parts of up to 8 MiB.")]
    full: bool
    handed_in: int | None
    handed_in_at: Time
    rejected: Annotated[int | None, Field(description="Records that the platform rejected. The audit log has them.")]
    lost: Annotated[int | None, Field(description="Damaged records, and requested records that are no longer stored.")]
    fault: Annotated[str | None, Field(description="Why the upload fails; null if it works.")]


class DiskStatus(ResponseBody):
    used_percent: float | None
    threshold_percent: int
    shed: Annotated[
        str, Field(description="What is dropped: `nothing`, `audit_files`, `audit_lines` or `journal_detail`.")
    ]
    files_removed: int
    entries_thinned: int


class SiemStatus(ResponseBody):
    type: str
    sent: Annotated[int, Field(description="Number of events since the start.")]
    sent_at: Time
    skipped: Annotated[int, Field(description="Events that are too large for the receiver even alone.")]
    waiting_bytes: Annotated[int, Field(description="Bytes of the journal that are not sent yet.")]
    fault: Annotated[str | None, Field(description="Why sending fails; null if it works.")]


class CircuitState(ResponseBody):
    provider: str
    model: Annotated[str | None, Field(description="Null for the circuit of the connections to the provider.")]
    state: Annotated[str, Field(description="`open`, or `half_open` if one request may try again.")]
    failures: Annotated[int, Field(description="Number of consecutive failures.")]
    credential: Annotated[
        str | None, Field(description="Label of the credential that the deployment of a model alias names, or null.")
    ]


class Status(ResponseBody):
    outpost_id: str
    tenant_id: str | None
    version: Annotated[str, Field(description="Version of the software.")]
    started_at: str
    ready: bool
    policy: PolicyStatus
    platform: Annotated[PlatformStatus | None, Field(description="Null in an air gap.")]
    portal: Annotated[PortalStatus | None, Field(description="Null in an air gap, and without `CLOUD_PORTAL_URL`.")]
    certificate: CertificateStatus | None
    kill_switch: KillSwitchState
    budget: Annotated[BudgetState, Field(description="The outpost's own budget, with the peers that share it.")]
    journal: JournalStatus
    disk: DiskStatus
    siem: Annotated[SiemStatus | None, Field(description="Null without `SIEM_DIRECT_TYPE`.")]
    circuits: Annotated[
        list[CircuitState], Field(description="Open circuits. Their models and providers receive no requests now.")
    ]


@router.get("/admin/api/status", response_model=Status)
async def read_status(host: AuthorizedHost) -> Status:
    in_force = host.bundles.in_force
    identity = host.identity
    return Status(
        outpost_id=str(host.id),
        tenant_id=None if in_force is None else str(in_force.bundle.tenant_id),
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
        CircuitState(provider=provider, **msgspec.structs.asdict(circuit))
        for provider, circuits in by_provider.items()
        for circuit in circuits
    ]


def _policy(host: OutpostHost) -> PolicyStatus:
    status, in_force = host.bundles.status, host.bundles.in_force
    bundle = None if in_force is None else in_force.bundle
    return PolicyStatus(
        version=None if bundle is None else bundle.version,
        source=status.source,
        issued_at=_time(None if bundle is None else bundle.issued_at),
        expires_at=_time(None if bundle is None else bundle.expires_at),
        age_seconds=None if bundle is None else max(0, int(time.time() - bundle.issued_at)),
        expired=bundle is not None and bundle.expires_at <= time.time(),
        asked_at=_time(status.polled_at),
        fetched_at=_time(status.fetched_at),
        activated_at=_time(status.activated_at),
        failed_at=_time(status.failed_at),
        fault=status.fault,
        credentials_unopened=[] if in_force is None else list(in_force.credentials.unopened),
        mcp_servers_left_out=[] if in_force is None else list(in_force.bundle.mcp_servers_left_out),
    )


def _platform(host: OutpostHost) -> PlatformStatus | None:
    follower = host.follower
    if follower is None or host.settings.platform_management_url is None:
        return None
    return PlatformStatus(
        url=host.settings.platform_management_url, heard_at=_time(follower.heard_at), fault=follower.fault
    )


def _journal(host: OutpostHost) -> JournalStatus:
    status = None if host.upload is None else host.upload.status
    return JournalStatus(
        bytes=host.journal.size_bytes(),
        full=host.journal.full(),
        handed_in=None if status is None else status.handed_in,
        handed_in_at=_time(None if status is None else status.at),
        rejected=None if status is None else status.rejected,
        lost=None if status is None else status.lost,
        fault=None if status is None else status.fault,
    )


def _disk(host: OutpostHost) -> DiskStatus:
    status = host.disk.status
    return DiskStatus(
        used_percent=None if status.percent is None else round(status.percent, 1),
        threshold_percent=host.settings.disk_monitor_threshold,
        shed=status.shed,
        files_removed=status.files_removed,
        entries_thinned=status.entries_thinned,
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
    return PortalStatus(url=url, taken_at=_time(heartbeat.accepted_at), fault=heartbeat.fault)


def _time(timestamp: float | None) -> str | None:
    return None if timestamp is None else iso(timestamp)
