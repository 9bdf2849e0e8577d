"""Diagnoses an installation: each check gives one line, with what to do where something is wrong."""

import asyncio
import os
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
import psycopg

from gatehouse.foundation.journal.files import free_bytes, journal_bytes
from gatehouse.foundation.mail import sending
from gatehouse.foundation.mail.message import parse_sender
from gatehouse.foundation.mail.sending import MailNotSent
from gatehouse.foundation.processes.preflight import misspelt
from gatehouse.foundation.redis.line import Address
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import migrate, roles
from gatehouse.foundation.storage.failures import DATABASE_ERRORS, describe
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.platform.installation import setup
from gatehouse.platform.installation.preflight import settings as checked_settings
from gatehouse.platform.installation.setup import Installation

Verdict = Literal["ok", "warn", "FAIL"]

_MIN_FREE_BYTES: Final = 1024**3
_MIN_OPEN_FILES: Final = 4096
_CERTIFICATE_WARNING_DAYS: Final = 21
_MAX_CLOCK_DIFFERENCE_SECONDS: Final = 5.0


class CheckResult(msgspec.Struct, frozen=True):
    """The result of a check. `remedy` is what to do, empty if nothing is wrong."""

    check: str
    verdict: Verdict
    message: str
    remedy: str = ""


def examine() -> Iterator[CheckResult]:
    """Run all checks, in an order in which one result explains the next. Changes nothing, but starts the embedded
    database."""
    try:
        settings = checked_settings()
        installed = setup.connect(settings)
    except BadSettings as error:
        yield CheckResult("settings", "FAIL", str(error), "set the variable as the message says")
        return
    yield CheckResult("settings", "ok", "embedded database" if settings.embedded else "DATABASE_URL answers")
    for name, similar in misspelt(Settings):
        yield CheckResult(
            "settings", "warn", f"{name} is no setting and has no effect", f"name it {similar}, or remove it"
        )
    yield from _database(installed)
    yield from _redis(settings)
    yield from _mail(settings)
    yield from _journal(installed)
    yield from _machine(settings)


def _database(installed: Installation) -> Iterator[CheckResult]:
    try:
        setup.check(installed)
        yield CheckResult("schema", "ok", "this version's")
        with psycopg.connect(installed.owner_url, autocommit=True, connect_timeout=10) as connection:
            for check in _DATABASE_CHECKS:
                yield check(connection, installed)
    except migrate.SchemaDrift as error:
        yield CheckResult("schema", "FAIL", str(error), "gatehouse migrate, or what the message says")
    except DATABASE_ERRORS as error:
        message, _, remedy = describe(error).partition("; ")
        yield CheckResult("database", "FAIL", message, remedy)


def _roles(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    bypassing = connection.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND (rolsuper OR rolbypassrls)",
        [[APP_ROLE, SERVICE_ROLE]],
    ).fetchall()
    if bypassing:
        remedy = f"ALTER ROLE {bypassing[0][0]} NOSUPERUSER NOBYPASSRLS"
        return CheckResult("roles", "FAIL", "a role of the application bypasses row-level security", remedy)
    try:
        setup.check_roles(installed)
    except roles.WrongRole as error:
        remedy = f"as a superuser, for the login of DATABASE_URL: GRANT {APP_ROLE}, {SERVICE_ROLE} TO ..."
        return CheckResult("roles", "FAIL", str(error), remedy)
    return CheckResult("roles", "ok", "own nothing, bypass nothing")


def _pooler(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    try:
        setup.check_pooler(installed)
    except BadSettings as error:
        message, _, remedy = str(error).partition("; ")
        return CheckResult("pooler", "FAIL", message, remedy)
    return CheckResult("pooler", "ok", "each connection is one session")


def _secrets(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    rows = connection.execute("SELECT kid, sealed_private FROM signing_keys WHERE retired_at IS NULL").fetchall()
    if not rows:
        return CheckResult("signing key", "FAIL", "there is none, so no token can be issued", "gatehouse keys rotate")
    sealer = Sealer(installed.master_keys.keys, installed.master_keys.current)
    try:
        for kid, sealed in rows:
            sealer.open(str(sealed), context=f"signing_key:{kid}".encode())
    except CannotOpen:
        remedy = "set GATEHOUSE_MASTER_KEY to the key that sealed this database's secrets"
        return CheckResult("master key", "FAIL", "it does not open what is sealed in the database", remedy)
    return CheckResult("master key", "ok", "opens what is sealed")


def _operators(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    row = connection.execute("SELECT count(*) FROM users WHERE operator AND is_active").fetchone()
    if row == (0,):
        return CheckResult(
            "operators", "warn", "nobody active can operate the platform", "gatehouse users operator EMAIL"
        )
    return CheckResult("operators", "ok", f"{row[0] if row else 0} active")


def _workers(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    rows = connection.execute(
        "SELECT name FROM nodes WHERE seen_at < now() - interval '15 seconds' AND seen_at > now() - interval '1 hour'"
    ).fetchall()
    if rows:
        names = ", ".join(str(row[0]) for row in rows)
        return CheckResult(
            "workers", "warn", f"not seen for 15 s: {names}", "look at their logs; restart what is stuck"
        )
    return CheckResult("workers", "ok", "all that should be there were seen")


def _clock(connection: psycopg.Connection[tuple[object, ...]], installed: Installation) -> CheckResult:
    row = connection.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    difference = abs(float(str(row[0])) - time.time())
    if difference > _MAX_CLOCK_DIFFERENCE_SECONDS:
        return CheckResult("clock", "warn", f"{difference:.0f} s apart from the database's", "run NTP on both machines")
    return CheckResult("clock", "ok", "agrees with the database's")


_DATABASE_CHECKS: Final[tuple[Callable[[psycopg.Connection[tuple[object, ...]], Installation], CheckResult], ...]] = (
    _roles,
    _pooler,
    _secrets,
    _operators,
    _workers,
    _clock,
)


def _redis(settings: Settings) -> Iterator[CheckResult]:
    if settings.redis_url is None:
        yield CheckResult("redis", "ok", "not used: each worker counts for itself")
        return
    try:
        address = Address.parse(settings.redis_url)
        if address.socket is None:
            socket.create_connection((address.host, address.port), timeout=2).close()
        else:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(address.socket)
    except (OSError, BadSettings) as error:
        yield CheckResult(
            "redis", "warn", f"does not answer ({error}); workers count alone", "start it, or mend REDIS_URL"
        )
        return
    yield CheckResult("redis", "ok", "answers")


def _mail(settings: Settings) -> Iterator[CheckResult]:
    mail = settings.mail
    if mail is None:
        yield CheckResult("mail", "ok", "not used: administrators pass links on")
        return
    try:
        asyncio.run(sending.check(mail.server, parse_sender(mail.sender)))
    except MailNotSent as error:
        yield CheckResult(
            "mail", "warn", str(error), "correct SMTP_URL, or start the server; mails wait until their links expire"
        )
        return
    yield CheckResult(
        "mail", "ok", f"{mail.server.host} answers" + (" and knows the login" if mail.server.username else "")
    )


def _journal(installed: Installation) -> Iterator[CheckResult]:
    journal = installed.home / "journal"
    journal.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(journal, os.W_OK):
        yield CheckResult(
            "journal", "FAIL", f"{journal} cannot be written", f"chown it to the user that serves: {journal}"
        )
        return
    size, free, limit = journal_bytes(journal), free_bytes(journal), installed.settings.journal_max_bytes
    if free < _MIN_FREE_BYTES:
        yield CheckResult(
            "journal", "FAIL", f"{free // 1024**2} MiB of disk are left", "make room below GATEHOUSE_HOME"
        )
    elif size > limit // 2:
        remedy = "see that a keeper runs and the database takes rows"
        yield CheckResult(
            "journal", "warn", f"{size // 1024**2} of {limit // 1024**2} MiB wait for the database", remedy
        )
    else:
        yield CheckResult("journal", "ok", f"{size // 1024} KiB wait, {free // 1024**3} GiB of disk are free")


def _machine(settings: Settings) -> Iterator[CheckResult]:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < _MIN_OPEN_FILES:
        remedy = f"ulimit -n {_MIN_OPEN_FILES * 4}, or LimitNOFILE= in the unit"
        yield CheckResult("open files", "warn", f"{files} a process, two for each request in progress", remedy)
    else:
        yield CheckResult("open files", "ok", f"{files} a process")
    if settings.tls_cert_path is not None:
        yield _certificate(settings)


def _certificate(settings: Settings) -> CheckResult:
    assert settings.tls_cert_path is not None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_cert_path, settings.tls_key_path)
        from cryptography import x509  # noqa: PLC0415 - only where there is a certificate

        expires = x509.load_pem_x509_certificate(settings.tls_cert_path.read_bytes()).not_valid_after_utc
    except (OSError, ssl.SSLError, ValueError) as error:
        return CheckResult(
            "TLS", "FAIL", f"the certificate cannot be loaded ({error})", "mend TLS_CERT_PATH, TLS_KEY_PATH"
        )
    days = (expires - datetime.now(UTC)).days
    if days < _CERTIFICATE_WARNING_DAYS:
        verdict: Verdict = "FAIL" if days < 0 else "warn"
        return CheckResult("TLS", verdict, f"the certificate ends in {days} days", "renew it, then restart")
    return CheckResult("TLS", "ok", f"the certificate is good for {days} days")
