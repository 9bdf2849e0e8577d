"""The checks of `gatehouse doctor` that a running worker makes (docs/operations.md)."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import Person, RunningPlatform, Tenant
from tests.support.relay import relay
from tests.support.tls import TlsFiles

from gatehouse.foundation.storage.database import Database
from gatehouse.platform.operations.health import checks, diagnosis
from gatehouse.platform.operations.health.patience import timed_out

PATH = "/api/admin/system/diagnosis"


async def findings(person: Person) -> dict[str, dict[str, Any]]:
    answer = await person.client.get(PATH)
    assert answer.status_code == 200, answer.text
    return {finding["check"]: finding for finding in answer.json()["findings"]}


async def test_a_healthy_installation_has_no_failure(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    answer = (await operator.client.get(PATH)).json()
    assert answer["node"] == platform.host.node.name
    checked = {finding["check"] for finding in answer["findings"]}
    assert checked >= {"master key", "roles", "operators", "workers", "clock", "redis", "journal", "open files"}
    failing = [finding for finding in answer["findings"] if finding["verdict"] == "fail"]
    assert failing == []
    assert all(finding["remedy"] is None for finding in answer["findings"] if finding["verdict"] == "ok")


async def test_each_problem_is_named_with_its_remedy(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operator, silent = await platform.operator(), f"machine-{uuid4().hex[:8]}"
    platform.sql(
        "INSERT INTO nodes (id, name, kind, pid, host, revision, seen_at)"
        " VALUES (%s, %s, 'gateway', 1, 'x', 0, now() - interval '1 minute')",
        [uuid4(), silent],
    )
    monkeypatch.setenv("RATE_LIMIT_TEIRS", "a secret of the operator")
    monkeypatch.setattr(platform.host.signer, "cannot_open", True)
    settings = platform.host.settings.model_copy(update={"tls_cert_path": tmp_path / "none.pem"})
    monkeypatch.setattr(platform.host, "settings", settings)
    answer = await operator.client.get(PATH)
    assert "a secret of the operator" not in answer.text
    by_check = {finding["check"]: finding for finding in answer.json()["findings"]}
    assert (by_check["settings"]["verdict"], by_check["settings"]["remedy"]) == (
        "warn", "rename it to RATE_LIMIT_TIERS, or remove it",
    )  # fmt: skip
    assert by_check["master key"]["verdict"] == "fail"
    assert "GATEHOUSE_MASTER_KEY" in by_check["master key"]["remedy"]
    assert (by_check["workers"]["verdict"], silent in by_check["workers"]["message"]) == ("warn", True)
    assert (by_check["TLS"]["verdict"], by_check["TLS"]["remedy"]) == ("fail", "correct TLS_CERT_PATH and TLS_KEY_PATH")
    platform.sql("DELETE FROM nodes WHERE name = %s", [silent])


def test_the_certificate_is_reported_before_and_after_its_end(platform: RunningPlatform, tmp_path: Path) -> None:
    def tls(days: float) -> tuple[str, str]:
        files = TlsFiles(tmp_path, days)
        paths = {"tls_cert_path": files.certificate, "tls_key_path": files.key}
        results = checks.machine(platform.host.settings.model_copy(update=paths))
        return next((result.verdict, result.message) for result in results if result.check == "TLS")

    assert tls(40.5) == ("ok", "the certificate is valid for 40 days")
    assert tls(5.5) == ("warn", "the certificate expires in 5 days")
    expired_on = (datetime.now(UTC) - timedelta(days=3)).date()
    assert tls(-3) == ("FAIL", f"the certificate expired on {expired_on}")


async def test_an_unresponsive_database_is_reported_within_seconds(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_TIMEOUT_SECONDS", 0.5)
    # The operator's session is known from memory.
    operator = await platform.operator()
    with relay(platform.host.settings.gatehouse_home / "postgres" / ".s.PGSQL.5432") as way:
        database = Database(way.url, pool_size=2)
        monkeypatch.setattr(platform.host, "database", database)
        assert "database" not in await findings(operator)
        way.swallow()
        async with asyncio.timeout(60):
            frozen = await findings(operator)
        assert (frozen["database"]["verdict"], frozen["journal"]["verdict"]) == ("fail", "ok")
        assert str(way.url) not in frozen["database"]["message"]
        way.mend()
        async with asyncio.timeout(60):
            while timed_out:
                await asyncio.sleep(0.02)
        await database.close()


async def test_administrators_and_auditors_see_results_without_details_of_the_machine(tenant: Tenant) -> None:
    for person in (tenant.admin, tenant.auditor):
        answer = (await person.client.get(PATH)).json()
        assert answer["node"] is None
        assert {finding["check"] for finding in answer["findings"]} >= {"master key", "journal"}
        assert {(finding["message"], finding["remedy"]) for finding in answer["findings"]} == {(None, None)}


async def test_users_and_strangers_see_nothing(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await tenant.user.client.get(PATH)).status_code == 403
    assert (await platform.anonymous.get(PATH)).status_code == 401
