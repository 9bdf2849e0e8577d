"""The rules of an import."""

import re
from typing import Any, Final

import msgspec
from starlette.requests import Request

from gatehouse.foundation.errors import FieldFault, PayloadTooLarge, Unprocessable
from gatehouse.portal.config_import.errors import NotOnPlatform, PlatformUnreachable
from gatehouse.portal.config_import.schemas import ConfigImported
from gatehouse.portal.errors import OrganizationNotFound
from gatehouse.portal.host import PortalHost
from gatehouse.portal.identity import Caller
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.platform import PlatformFailed, PlatformRefused
from gatehouse.portal.requests import changing

#: A thousand rules, and as many patterns, have room in it.
MOST_BYTES: Final = 1024 * 1024
#: As many take the platform a quarter of a minute, on a busy machine a minute.
_PATIENCE_SECONDS: Final = 300.0
_BYTE: Final = re.compile(r" \(byte (\d+)\)$")


async def take_over(
    request: Request, host: PortalHost, caller: Caller, file: bytes, *, dry_run: bool
) -> ConfigImported:
    """Raises `PayloadTooLarge`, `Unprocessable`, `NotOnPlatform`, `PlatformUnreachable`."""
    assert caller.org_id is not None
    config = _read(file)
    # Nothing is held while the platform works.
    async with host.database.tenant(caller.org_id) as session:
        org = await session.get(OrganizationRow, caller.org_id)
    if org is None:
        raise OrganizationNotFound
    if org.provisioning_status != "active":
        raise NotOnPlatform
    path = f"/v1/platform/tenants/{org.tenant_id or org.id}/config-import"
    try:
        sent = {"config": config, "dry_run": dry_run}
        answer = await host.platform.call("POST", path, sent, patience=_PATIENCE_SECONDS)
    except PlatformFailed as failed:
        if isinstance(failed, PlatformRefused) and failed.status == 422:
            told = failed.reason.removeprefix("config.").replace("; config.", "; ")
            raise _fault(f"is not good at {told}") from None
        if isinstance(failed, PlatformRefused) and failed.status == 404:
            raise NotOnPlatform from None
        if not dry_run:
            async with changing(request, host, caller.org_id, caller) as change:
                change.record("config.import_failed", "organization", org.id, reason=str(failed))
        raise PlatformUnreachable from None
    found = ConfigImported.model_validate(answer)
    if not dry_run:
        async with changing(request, host, caller.org_id, caller) as change:
            change.record(
                "config.imported",
                "organization",
                org.id,
                imported=len(found.imported),
                skipped=len(found.skipped),
                missing_patterns=found.missing_patterns,
                errors=len(found.errors),
            )
    return found


def _read(file: bytes) -> dict[str, Any]:
    """Raises `PayloadTooLarge`, and `Unprocessable` that says where."""
    if len(file) > MOST_BYTES:
        raise PayloadTooLarge(f"file: may have {MOST_BYTES} bytes at most.")
    # Some editors begin a file with a mark of its encoding.
    file = file.removeprefix(b"\xef\xbb\xbf")
    try:
        found = msgspec.json.decode(file)
    except msgspec.DecodeError as error:
        raise _fault(_placed(str(error), file)) from None
    except RecursionError:
        raise _fault("is nested too deep") from None
    if not isinstance(found, dict) or "version" not in found:
        raise _fault("is no configuration of an outpost: GET /admin/config/export answers one")
    return found


def _placed(message: str, file: bytes) -> str:
    """A decoder counts bytes, an editor lines."""
    at = _BYTE.search(message)
    if at is None:
        return f"is no JSON: {message}"
    before = file[: int(at[1])]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"is no JSON: line {line}, column {column}: {message[: at.start()]}"


def _fault(message: str) -> Unprocessable:
    return Unprocessable(faults=[FieldFault("file", message)])
