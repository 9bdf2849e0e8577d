"""`gatehouse archive`: results, output formats, and what queries cannot access."""

import csv
import io
import json

import pytest
from click.testing import CliRunner, Result
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.cli.main import cli


@pytest.fixture
async def command(platform: RunningPlatform, tenant: Tenant, past, run, archive, monkeypatch):
    """Run `gatehouse archive` with archived records of two organizations."""
    await past(tenant, 110, 100, cost_usd="0.1")
    run(tenant)
    monkeypatch.setenv("GATEHOUSE_HOME", str(platform.installed.home))
    monkeypatch.setenv("ARCHIVE_URL", archive.archive_url)

    def run_command(*words: str, input: str | None = None) -> Result:
        return CliRunner().invoke(cli, ["archive", *words], input=input)

    return run_command


async def test_results_are_shown_as_a_table_as_csv_and_as_json(command, tenant: Tenant) -> None:
    sql = "SELECT provider, count(*) AS n, sum(cost_usd) AS usd, NULL AS nothing FROM usage_records GROUP BY provider"
    completed = command("query", sql, "--tenant", tenant.slug)
    assert completed.output.splitlines() == [
        "provider  n  usd                   nothing",
        "--------  -  --------------------  -------",
        "sandbox   2  0.200000000000000000",
    ]
    rows = list(csv.reader(io.StringIO(command("query", sql, "--tenant", tenant.slug, "--format", "csv").output)))
    assert rows == [["provider", "n", "usd", "nothing"], ["sandbox", "2", "0.200000000000000000", ""]]
    lines = command("query", sql, "--tenant", tenant.slug, "--format", "json").output.splitlines()
    assert [json.loads(line) for line in lines] == [{"provider": "sandbox", "n": 2, "usd": 0.2, "nothing": None}]


async def test_times_are_in_utc_and_details_are_json(command, tenant: Tenant) -> None:
    sql = (
        "SELECT date_trunc('day', timestamp) AS day, details->>'status' AS status FROM audit_events ORDER BY 1 LIMIT 1"
    )
    (line,) = command("query", sql, "--tenant", tenant.slug, "--format", "json").output.splitlines()
    assert json.loads(line)["day"][10:] == "T00:00:00Z"
    assert json.loads(line)["status"] == "200"


async def test_the_tables_exist_in_an_empty_archive(command, other_tenant: Tenant) -> None:
    completed = command("query", "SELECT id FROM dlp_events", "--tenant", other_tenant.slug, "--format", "csv")
    assert (completed.exit_code, completed.output) == (0, "id\n")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "COPY (SELECT 1) TO '/tmp/x.csv'",
        "SELECT * FROM read_parquet('/tmp/*.parquet')", "ATTACH '/tmp/x.db'", "INSTALL httpfs", "LOAD httpfs",
        "SET enable_external_access = true", "SET lock_configuration = false", "SELECT * FROM glob('/*')",
        "SELECT * FROM tenant_id", "SELECT * FROM engine", "SELECT * FROM read_text('/etc/hostname')", "SELEC 1",
        "EXPORT DATABASE '/tmp/x'", "IMPORT DATABASE '/tmp/x'", "",
    ],
)  # fmt: skip
async def test_a_query_cannot_access_anything_else_on_the_machine(command, sql: str) -> None:
    completed = command("query", sql)
    assert completed.exit_code != 0
    assert completed.output.startswith(("gatehouse: ", "Usage")) or completed.output == ""
    assert "root:" not in completed.output


async def test_files_are_listed_and_verified(command, tenant: Tenant, archive) -> None:
    listed = command("list", "--tenant", tenant.slug).output.splitlines()
    assert [line.split("  ")[1] for line in listed] == ["audit_events", "dlp_events", "usage_records"]
    assert all("2 rows" in line and line.startswith(tenant.slug) for line in listed)
    whole = command("verify", "--tenant", tenant.slug)
    assert (whole.exit_code, whole.output) == (0, "3 files with 6 rows, none of them unsound\n")
    file = archive.gatehouse_home / "archive" / listed[1].split("  ")[-1]
    file.write_bytes(b"something else")
    broken = command("verify", "--tenant", tenant.slug)
    assert broken.exit_code == 1
    assert broken.output.splitlines()[0].endswith("it differs from the file that was archived")


async def test_the_archiver_runs_at_once_on_request(command, tenant: Tenant, past) -> None:
    await past(tenant, 120)
    completed = command("run", "--tenant", tenant.slug)
    assert (completed.exit_code, completed.output.splitlines()[-1]) == (0, "3 rows went to the archive.")


async def test_a_run_reports_organizations_under_a_legal_hold(command, tenant: Tenant) -> None:
    await tenant.admin.client.put("/api/v1/admin/retention/legal-hold", json={"reason": "case 7"})
    completed = command("run", "--tenant", tenant.slug)
    assert completed.exit_code == 0
    assert completed.output.splitlines()[-1] == f"{tenant.slug}: there is a legal hold, so nothing was archived"


async def test_a_query_can_be_given_on_standard_input(command, tenant: Tenant) -> None:
    sql = "SELECT 'it''s here' AS said,\n count(*) AS n FROM audit_events"
    completed = command("query", "-", "--tenant", tenant.slug, "--format", "csv", input=sql)
    assert completed.output == "said,n\nit's here,2\n"


async def test_an_unknown_organization_is_named(command) -> None:
    assert command("list", "--tenant", "nobody-at-all").exit_code == 1
