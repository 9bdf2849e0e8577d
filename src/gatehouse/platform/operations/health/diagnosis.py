"""Runs the checks of `gatehouse doctor` that a running worker can run: those of the worker, its machine and the
database. The checks change nothing, and each group of checks has a timeout."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.identity import Caller
from gatehouse.platform.operations.health import checks
from gatehouse.platform.operations.health.checks import CheckResult
from gatehouse.platform.operations.health.patience import with_timeout
from gatehouse.platform.operations.health.schemas import Diagnosis, Finding
from gatehouse.platform.request.ports import Host

#: Time limit for all database queries together, and for all checks of the machine's files together.
_TIMEOUT_SECONDS: Final = 3.0


async def of(host: Host, caller: Caller) -> Diagnosis:
    """Return the results of this worker's checks. Does not raise. Only operators see the messages, which may contain
    names of machines and paths."""
    results = [
        *checks.misspelt_settings(),
        checks.master_key(opens=not host.signer.cannot_open),
        *await _database(host),
        _redis(host),
        *await _machine(host),
    ]
    return Diagnosis(
        node=host.node.name if caller.operator else None,
        findings=[_finding(result, detailed=caller.operator) for result in results],
    )


async def _database(host: Host) -> list[CheckResult]:
    try:
        return await with_timeout(_query(host), _TIMEOUT_SECONDS)
    except (SQLAlchemyError, psycopg.Error, OSError, TimeoutError) as error:
        # The text of the error is left out, because it may contain the address of the database.
        message = f"does not answer within {_TIMEOUT_SECONDS:.0f} s ({type(error).__name__})"
        return [CheckResult("database", "FAIL", message, "read the log of PostgreSQL")]


async def _query(host: Host) -> list[CheckResult]:
    async with host.database.service() as session:
        return [await check(session) for check in _DATABASE_CHECKS]


async def _roles(session: AsyncSession) -> CheckResult:
    return checks.bypassing_roles((await session.scalars(text(checks.BYPASSING_ROLES))).all())


async def _operators(session: AsyncSession) -> CheckResult:
    return checks.active_operators((await session.execute(text(checks.ACTIVE_OPERATORS))).scalar_one())


async def _workers(session: AsyncSession) -> CheckResult:
    return checks.silent_workers((await session.scalars(text(checks.SILENT_WORKERS))).all())


async def _clock(session: AsyncSession) -> CheckResult:
    return checks.clock((await session.execute(text(checks.DATABASE_TIME))).scalar_one())


_DATABASE_CHECKS: Final[tuple[Callable[[AsyncSession], Awaitable[CheckResult]], ...]] = (
    _roles, _operators, _workers, _clock,
)  # fmt: skip


def _redis(host: Host) -> CheckResult:
    if not isinstance(host.counters, RedisCounters):
        return CheckResult("redis", "ok", "not used: each worker counts separately")
    if host.counters.degraded:
        return CheckResult(
            "redis", "warn", "unavailable or slow; each worker counts separately", "start it, or correct REDIS_URL"
        )
    return CheckResult("redis", "ok", "answers")


async def _machine(host: Host) -> list[CheckResult]:
    def check() -> list[CheckResult]:
        return list(_machine_checks(host))

    try:
        return await with_timeout(asyncio.to_thread(check), _TIMEOUT_SECONDS)
    except (OSError, TimeoutError) as error:
        message = f"cannot be read within {_TIMEOUT_SECONDS:.0f} s ({type(error).__name__})"
        return [CheckResult("journal", "FAIL", message, "check the disk of GATEHOUSE_HOME")]


def _machine_checks(host: Host) -> Iterator[CheckResult]:
    yield checks.journal(host.settings.gatehouse_home / "journal", host.settings.journal_max_bytes)
    yield from checks.machine(host.settings)


def _finding(result: CheckResult, *, detailed: bool) -> Finding:
    fields: dict[str, Any] = {"check": result.check, "verdict": result.verdict.lower()}
    return Finding(
        **fields, message=result.message if detailed else None, remedy=result.remedy or None if detailed else None
    )
