"""Diagnoses an installation. Each check yields one line, with a remedy if it finds a fault."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg

from gatehouse.foundation.mail import sending
from gatehouse.foundation.mail.message import parse_sender
from gatehouse.foundation.mail.sending import MailNotSent
from gatehouse.foundation.redis.line import Address
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import migrate, roles
from gatehouse.foundation.storage.failures import DATABASE_ERRORS, describe
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.platform.installation import setup
from gatehouse.platform.installation.preflight import settings as checked_settings
from gatehouse.platform.installation.setup import Installation
from gatehouse.platform.operations.health import checks
from gatehouse.platform.operations.health.checks import CheckResult

Connection = psycopg.Connection[tuple[Any, ...]]


def examine() -> Iterator[CheckResult]:
    """Run all checks. A check comes before other checks whose results it explains. Changes nothing, except that it
    starts the embedded database."""
    try:
        settings = checked_settings()
        installed = setup.connect(settings)
    except BadSettings as error:
        yield CheckResult("settings", "FAIL", str(error), "correct the variable that the message names")
        return
    yield CheckResult("settings", "ok", "embedded database" if settings.embedded else "DATABASE_URL answers")
    yield from checks.misspelt_settings()
    yield from _database(installed)
    yield _redis(settings)
    yield from _mail(settings)
    journal = installed.home / "journal"
    journal.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield checks.journal(journal, settings.journal_max_bytes)
    yield from checks.machine(settings)


def _database(installed: Installation) -> Iterator[CheckResult]:
    try:
        setup.check(installed)
        yield CheckResult("schema", "ok", "this version's")
        with psycopg.connect(installed.owner_url, autocommit=True, connect_timeout=10) as connection:
            for check in _DATABASE_CHECKS:
                yield check(connection, installed)
    except migrate.SchemaDrift as error:
        yield CheckResult("schema", "FAIL", str(error), "run gatehouse migrate, or follow the message")
    except DATABASE_ERRORS as error:
        message, _, remedy = describe(error).partition("; ")
        yield CheckResult("database", "FAIL", message, remedy)


def _roles(connection: Connection, installed: Installation) -> CheckResult:
    result = checks.bypassing_roles([name for (name,) in connection.execute(checks.BYPASSING_ROLES)])
    if result.verdict != "ok":
        return result
    try:
        setup.check_roles(installed)
    except roles.WrongRole as error:
        remedy = f"as a superuser, for the login of DATABASE_URL: GRANT {APP_ROLE}, {SERVICE_ROLE} TO ..."
        return CheckResult("roles", "FAIL", str(error), remedy)
    return result


def _pooler(connection: Connection, installed: Installation) -> CheckResult:
    try:
        setup.check_pooler(installed)
    except BadSettings as error:
        message, _, remedy = str(error).partition("; ")
        return CheckResult("pooler", "FAIL", message, remedy)
    return CheckResult("pooler", "ok", "each connection is one session")


def _secrets(connection: Connection, installed: Installation) -> CheckResult:
    rows = connection.execute("SELECT kid, sealed_private FROM signing_keys WHERE retired_at IS NULL").fetchall()
    if not rows:
        return CheckResult("signing key", "FAIL", "there is none, so no token can be issued", "gatehouse keys rotate")
    sealer = Sealer(installed.master_keys.keys, installed.master_keys.current)
    try:
        for kid, sealed in rows:
            sealer.open(str(sealed), context=f"signing_key:{kid}".encode())
    except CannotOpen:
        return checks.master_key(opens=False)
    return checks.master_key(opens=True)


def _operators(connection: Connection, installed: Installation) -> CheckResult:
    row = connection.execute(checks.ACTIVE_OPERATORS).fetchone()
    assert row is not None
    return checks.active_operators(row[0])


def _workers(connection: Connection, installed: Installation) -> CheckResult:
    return checks.silent_workers([name for (name,) in connection.execute(checks.SILENT_WORKERS)])


def _clock(connection: Connection, installed: Installation) -> CheckResult:
    row = connection.execute(checks.DATABASE_TIME).fetchone()
    assert row is not None
    return checks.clock(row[0])


_DATABASE_CHECKS: Final[tuple[Callable[[Connection, Installation], CheckResult], ...]] = (
    _roles,
    _pooler,
    _secrets,
    _operators,
    _workers,
    _clock,
)


def _redis(settings: Settings) -> CheckResult:
    if settings.redis_url is None:
        return CheckResult("redis", "ok", "not used: each worker counts separately")
    try:
        address = Address.parse(settings.redis_url)
        if address.socket is None:
            socket.create_connection((address.host, address.port), timeout=2).close()
        else:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(2)
                connection.connect(address.socket)
    except (OSError, BadSettings) as error:
        return CheckResult(
            "redis",
            "warn",
            f"does not answer ({error}); each worker counts separately",
            "start it, or correct REDIS_URL",
        )
    return CheckResult("redis", "ok", "answers")


def _mail(settings: Settings) -> Iterator[CheckResult]:
    mail = settings.mail
    if mail is None:
        yield CheckResult("mail", "ok", "not used: administrators forward links themselves")
        return
    try:
        asyncio.run(sending.check(mail.server, parse_sender(mail.sender)))
    except MailNotSent as error:
        yield CheckResult(
            "mail", "warn", str(error), "correct SMTP_URL, or start the server; mails wait until their links expire"
        )
        return
    yield CheckResult(
        "mail", "ok", f"{mail.server.host} answers" + (" and accepts the login" if mail.server.username else "")
    )
