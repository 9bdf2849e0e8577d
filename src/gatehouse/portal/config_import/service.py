"""Imports an outpost's configuration through the platform."""

import re
from typing import Any, Final

import msgspec
from starlette.requests import Request

from gatehouse.foundation.errors import Conflict, FieldFault, PayloadTooLarge, Unavailable, Unprocessable
from gatehouse.portal.config_import.schemas import ConfigImported
from gatehouse.portal.errors import PortalOrganizationNotFound
from gatehouse.portal.host import PortalHost
from gatehouse.portal.identity import PortalCaller
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.platform_link.client import PlatformError, PortalPlatformRefusal
from gatehouse.portal.request.injected import changing

#: Maximum size of the file. It is sufficient for a thousand rules and a thousand patterns.
MAX_FILE_BYTES: Final = 1024 * 1024
#: The platform imports a thousand rules and patterns in 15 seconds, or in a minute on a busy machine.
_IMPORT_TIMEOUT_SECONDS: Final = 300.0
_BYTE_POSITION: Final = re.compile(r" \(byte (\d+)\)$")


class NotOnPlatform(Conflict):
    message = "The organization does not exist on the platform yet: see its provisioning_status."


class PlatformUnreachable(Unavailable):
    # It is unknown whether the platform has imported parts of the file.
    message = "The platform did not respond as expected. Try again in a moment: parts that were imported are skipped."


async def take_over(
    request: Request, host: PortalHost, caller: PortalCaller, file: bytes, *, dry_run: bool
) -> ConfigImported:
    """Imports the file and records the import. Raises `PayloadTooLarge`, `Unprocessable`, `NotOnPlatform`,
    `PlatformUnreachable`."""
    assert caller.org_id is not None
    config = _read(file)
    # Close the session before the call of the platform, so that no database connection waits for the platform.
    async with host.database.tenant(caller.org_id) as session:
        org = await session.get(OrganizationRow, caller.org_id)
    if org is None:
        raise PortalOrganizationNotFound
    if org.provisioning_status != "active":
        raise NotOnPlatform
    path = f"/v1/platform/tenants/{org.tenant_id or org.id}/config-import"
    try:
        body = {"config": config, "dry_run": dry_run}
        answer = await host.platform.call("POST", path, body, timeout_seconds=_IMPORT_TIMEOUT_SECONDS)
    except PlatformError as error:
        if isinstance(error, PortalPlatformRefusal) and error.status == 422:
            reason = error.reason.removeprefix("config.").replace("; config.", "; ")
            raise _fault(f"is not valid at {reason}") from None
        if isinstance(error, PortalPlatformRefusal) and error.status == 404:
            raise NotOnPlatform from None
        if not dry_run:
            async with changing(request, host, caller.org_id, caller) as change:
                change.record("config.import_failed", "organization", org.id, reason=str(error))
        raise PlatformUnreachable from None
    result = ConfigImported.model_validate(answer)
    if not dry_run:
        async with changing(request, host, caller.org_id, caller) as change:
            change.record(
                "config.imported",
                "organization",
                org.id,
                imported=len(result.imported),
                skipped=len(result.skipped),
                missing_patterns=result.missing_patterns,
                errors=len(result.errors),
            )
    return result


def _read(file: bytes) -> dict[str, Any]:
    """Returns the document in the file. Raises `PayloadTooLarge`, and `Unprocessable` with the position of the
    fault."""
    if len(file) > MAX_FILE_BYTES:
        raise PayloadTooLarge(f"file: may have {MAX_FILE_BYTES} bytes at most.")
    # Some editors write a byte order mark.
    file = file.removeprefix(b"\xef\xbb\xbf")
    try:
        config = msgspec.json.decode(file)
    except msgspec.DecodeError as error:
        raise _fault(_located_message(str(error), file)) from None
    except RecursionError:
        raise _fault("is nested too deeply") from None
    if not isinstance(config, dict) or "version" not in config:
        raise _fault("is not an outpost's configuration: send the document of GET /admin/config/export")
    return config


def _located_message(message: str, file: bytes) -> str:
    """Returns the decoder's message with line and column instead of a byte position."""
    match = _BYTE_POSITION.search(message)
    if match is None:
        return f"is not JSON: {message}"
    preceding = file[: int(match[1])]
    line, column = preceding.count(b"\n") + 1, len(preceding) - preceding.rfind(b"\n")
    return f"is not JSON: line {line}, column {column}: {message[: match.start()]}"


def _fault(message: str) -> Unprocessable:
    return Unprocessable(faults=[FieldFault("file", message)])
