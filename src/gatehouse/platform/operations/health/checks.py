"""Checks of an installation that `gatehouse doctor` and a running worker share. Each check yields one result, with a
remedy if it finds a fault."""

import os
import resource
import ssl
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from gatehouse.foundation.journal.files import free_bytes, journal_bytes
from gatehouse.foundation.processes.preflight import misspelt
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE

Verdict = Literal["ok", "warn", "FAIL"]

_MIN_FREE_BYTES: Final = 1024**3
_MIN_OPEN_FILES: Final = 4096
_CERTIFICATE_WARNING_DAYS: Final = 21
_MAX_CLOCK_DIFFERENCE_SECONDS: Final = 5.0

#: Queries whose results are evaluated by the functions with the same names.
BYPASSING_ROLES: Final = (
    f"SELECT rolname FROM pg_roles WHERE rolname IN ('{APP_ROLE}', '{SERVICE_ROLE}') AND (rolsuper OR rolbypassrls)"  # noqa: S608
)
ACTIVE_OPERATORS: Final = "SELECT count(*) FROM users WHERE operator AND is_active"
SILENT_WORKERS: Final = (
    "SELECT name FROM nodes WHERE seen_at < now() - interval '15 seconds' AND seen_at > now() - interval '1 hour'"
    " ORDER BY name"
)
DATABASE_TIME: Final = "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8"


class CheckResult(msgspec.Struct, frozen=True):
    """The result of a check. `remedy` describes what to do. It is empty if the check found no fault."""

    check: str
    verdict: Verdict
    message: str
    remedy: str = ""


def misspelt_settings() -> Iterator[CheckResult]:
    for name, similar in misspelt(Settings):
        yield CheckResult(
            "settings", "warn", f"{name} is not a setting and has no effect", f"rename it to {similar}, or remove it"
        )


def master_key(*, opens: bool) -> CheckResult:
    if opens:
        return CheckResult("master key", "ok", "opens the sealed secrets")
    remedy = "set GATEHOUSE_MASTER_KEY to the key that sealed this database's secrets"
    return CheckResult("master key", "FAIL", "it does not open the sealed secrets in the database", remedy)


def bypassing_roles(names: Sequence[str]) -> CheckResult:
    if names:
        remedy = f"ALTER ROLE {names[0]} NOSUPERUSER NOBYPASSRLS"
        return CheckResult("roles", "FAIL", "a role of the application bypasses row-level security", remedy)
    return CheckResult("roles", "ok", "no role bypasses row-level security")


def active_operators(count: int) -> CheckResult:
    if count == 0:
        return CheckResult("operators", "warn", "there is no active operator", "gatehouse users operator EMAIL")
    return CheckResult("operators", "ok", f"{count} active")


def silent_workers(names: Sequence[str]) -> CheckResult:
    if names:
        return CheckResult(
            "workers",
            "warn",
            f"not seen for 15 s: {', '.join(names)}",
            "read the workers' logs; restart workers that hang",
        )
    return CheckResult("workers", "ok", "all workers sent heartbeats")


def clock(database_time: float) -> CheckResult:
    difference = abs(database_time - time.time())
    if difference > _MAX_CLOCK_DIFFERENCE_SECONDS:
        return CheckResult(
            "clock", "warn", f"differs from the database's clock by {difference:.0f} s", "run NTP on both machines"
        )
    return CheckResult("clock", "ok", "agrees with the database's clock")


def journal(folder: Path, max_bytes: int) -> CheckResult:
    if not os.access(folder, os.W_OK):
        remedy = f"make the user that runs `gatehouse serve` the owner of {folder}"
        return CheckResult("journal", "FAIL", f"{folder} cannot be written", remedy)
    size, free = journal_bytes(folder), free_bytes(folder)
    if free < _MIN_FREE_BYTES:
        return CheckResult(
            "journal", "FAIL", f"{free // 1024**2} MiB of disk are left", "free disk space in GATEHOUSE_HOME"
        )
    if size > max_bytes // 2:
        remedy = "check that a keeper runs and that the database is writable"
        return CheckResult(
            "journal", "warn", f"{size // 1024**2} of {max_bytes // 1024**2} MiB wait for the database", remedy
        )
    return CheckResult(
        "journal", "ok", f"{size // 1024} KiB wait for the database, {free // 1024**3} GiB of disk are free"
    )


def machine(settings: Settings) -> Iterator[CheckResult]:
    """Yield the checks of this machine's limits, and of the certificate if one is configured."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < _MIN_OPEN_FILES:
        remedy = f"ulimit -n {_MIN_OPEN_FILES * 4}, or LimitNOFILE= in the unit"
        yield CheckResult(
            "open files", "warn", f"limit of {files} per process; each request in progress needs two", remedy
        )
    else:
        yield CheckResult("open files", "ok", f"limit of {files} per process")
    if settings.tls_cert_path is not None:
        yield _certificate(settings.tls_cert_path, settings.tls_key_path)


def _certificate(certificate: Path, key: Path | None) -> CheckResult:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        from cryptography import x509  # noqa: PLC0415 - only where there is a certificate

        expires = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except (OSError, ssl.SSLError, ValueError) as error:
        return CheckResult(
            "TLS", "FAIL", f"the certificate cannot be loaded ({error})", "correct TLS_CERT_PATH and TLS_KEY_PATH"
        )
    days = (expires - datetime.now(UTC)).days
    if days < 0:
        return CheckResult("TLS", "FAIL", f"the certificate expired on {expires:%Y-%m-%d}", "renew it, then restart")
    if days < _CERTIFICATE_WARNING_DAYS:
        return CheckResult("TLS", "warn", f"the certificate expires in {days} days", "renew it, then restart")
    return CheckResult("TLS", "ok", f"the certificate is valid for {days} days")
