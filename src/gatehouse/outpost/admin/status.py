"""How this outpost is: one look for an operator, or for whatever watches it."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from gatehouse import __version__
from gatehouse.foundation.clock import iso
from gatehouse.foundation.http.bodies import Shown
from gatehouse.outpost.admin.access import Operated
from gatehouse.outpost.admin.overrides import KillSwitchState, kill_switch
from gatehouse.outpost.host import OutpostHost

router = APIRouter(tags=["Status"])

Time = Annotated[str | None, Field(examples=["2026-05-04T12:00:00Z"])]


class PolicyStatus(Shown):
    version: Annotated[int | None, Field(description="Of the bundle in force; null while there is none.")]
    source: Annotated[str | None, Field(description="`platform`, `file`, `kept` or `peer`.")]
    issued_at: Time
    expires_at: Time
    asked_at: Time
    fetched_at: Time
    activated_at: Time
    failed_at: Time
    fault: Annotated[str | None, Field(description="Why the last one that came was refused.")]


class PlatformStatus(Shown):
    url: str
    heard_at: Time
    fault: Annotated[str | None, Field(description="Why it gives no answer, while it does not.")]


class CertificateStatus(Shown):
    serial: str
    expires_at: str


class JournalStatus(Shown):
    bytes: int
    full: bool


class Status(Shown):
    outpost_id: str
    tenant_id: str | None
    version: Annotated[str, Field(description="Of the software.")]
    started_at: str
    ready: bool
    policy: PolicyStatus
    platform: Annotated[PlatformStatus | None, Field(description="Null in an air gap.")]
    certificate: CertificateStatus | None
    kill_switch: KillSwitchState
    journal: JournalStatus


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
        certificate=None
        if identity is None
        else CertificateStatus(serial=identity.serial, expires_at=iso(identity.expires_at)),
        kill_switch=kill_switch(host),
        journal=JournalStatus(bytes=host.journal.size_bytes(), full=host.journal.full()),
    )


def _policy(host: OutpostHost) -> PolicyStatus:
    status, held = host.bundles.status, host.bundles.in_force
    bundle = None if held is None else held.bundle
    return PolicyStatus(
        version=None if bundle is None else bundle.version,
        source=status.source,
        issued_at=_time(None if bundle is None else bundle.issued_at),
        expires_at=_time(None if bundle is None else bundle.expires_at),
        asked_at=_time(status.asked),
        fetched_at=_time(status.fetched),
        activated_at=_time(status.activated),
        failed_at=_time(status.failed),
        fault=status.fault,
    )


def _platform(host: OutpostHost) -> PlatformStatus | None:
    follower = host.follower
    if follower is None or host.settings.platform_management_url is None:
        return None
    return PlatformStatus(
        url=host.settings.platform_management_url, heard_at=_time(follower.heard), fault=follower.fault
    )


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)
