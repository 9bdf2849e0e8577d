"""The audit chain over database and archive is valid, and changes of either are detected."""

from datetime import timedelta

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.access.anonymising import anonymise
from gatehouse.platform.records.archive import jobs
from gatehouse.platform.records.archive.storage import files as archive_files


@pytest.fixture
async def archived(platform: RunningPlatform, tenant: Tenant, past, run, breaks, monkeypatch) -> Tenant:
    """An organization with six events in two files, and two events in the database."""
    monkeypatch.setattr(archive_files, "MAX_FILE_ROWS", 3)
    await past(tenant, *range(110, 104, -1), 2, 1)
    run(tenant)
    assert breaks(tenant) == []
    return tenant


def files(platform: RunningPlatform, tenant: Tenant) -> list[str]:
    query = "SELECT path FROM archive_files WHERE tenant_id = %s AND records = 'audit_events' ORDER BY first_sequence"
    return [row[0] for row in platform.sql(query, [tenant.id])]


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [
        ("DELETE FROM audit_events WHERE tenant_id = %s AND sequence = 7", 7),
        ("UPDATE audit_events SET action = 'user.deleted' WHERE tenant_id = %s AND sequence = 8", 8),
        # The archive's entries about its files are removed.
        ("DELETE FROM archive_files WHERE tenant_id = %s AND first_sequence = 1", 1),
        ("DELETE FROM archive_files WHERE tenant_id = %s AND records = 'audit_events'", 1),
        ("UPDATE archive_files SET sealed_checkpoint = 'v1.x.y' WHERE tenant_id = %s AND first_sequence = 4", 4),
        ("UPDATE archive_files a SET sealed_checkpoint = b.sealed_checkpoint FROM archive_files b"
         " WHERE a.tenant_id = %s AND a.first_sequence = 4 AND b.tenant_id = a.tenant_id AND b.first_sequence = 1", 4),
        # The archiver's entry says that a file was removed because its retention ended.
        ("UPDATE archive_files SET state = 'gone' WHERE tenant_id = %s AND first_sequence = 1", 1),
        # The event is changed and its salt removed, so that its personal fields cannot be verified any more.
        ("UPDATE audit_events SET actor_id = 'somebody else', salt = NULL WHERE tenant_id = %s AND sequence = 7", 7),
    ],
)  # fmt: skip
async def test_tampering_with_the_database_is_found(
    platform: RunningPlatform, archived: Tenant, breaks, statement: str, sequence: int
) -> None:
    platform.sql(statement, [archived.id])
    assert breaks(archived)[0].sequence == sequence


async def test_a_changed_file_is_found(platform: RunningPlatform, archived: Tenant, archive: Settings, breaks) -> None:
    file = archive.gatehouse_home / "archive" / files(platform, archived)[1]
    content = file.read_bytes()
    file.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    (result, *_) = breaks(archived)
    assert (result.sequence, result.reason.endswith("it differs from the file that was archived")) == (4, True)


async def test_a_missing_file_is_found(platform: RunningPlatform, archived: Tenant, archive: Settings, breaks) -> None:
    (archive.gatehouse_home / "archive" / files(platform, archived)[0]).unlink()
    (result, *_) = breaks(archived)
    assert (result.sequence, "it cannot be read" in result.reason) == (1, True)


async def test_an_event_that_was_changed_before_it_was_archived_is_found(
    platform: RunningPlatform, tenant: Tenant, past, run, breaks
) -> None:
    await past(tenant, 110, 109, 108, 1)
    platform.sql("UPDATE audit_events SET reason = 'x' WHERE tenant_id = %s AND sequence = 2", [tenant.id])
    run(tenant)
    assert [gap.sequence for gap in breaks(tenant)] == [2]


async def test_after_old_files_are_removed_the_chain_starts_after_them(
    platform: RunningPlatform, archived: Tenant, archive: Settings, run, breaks, ask
) -> None:
    policy = {"hot_retention_days": 90, "warm_retention_days": 30, "cold_retention_years": 1}
    await archived.admin.client.put("/api/v1/admin/retention/policy", json=policy)
    first = files(platform, archived)
    run(archived, NOW + timedelta(days=10))
    assert files(platform, archived) == first
    run(archived, NOW + timedelta(days=20))
    cold = files(platform, archived)
    # A file that is warm until 120 days after its last event is removed a year later.
    until = (NOW - timedelta(days=108) + timedelta(days=120)).date()
    assert cold[0].startswith(f"cold/until-{until.replace(year=until.year + 1)}/audit_events/{archived.id}/")
    folder = archive.gatehouse_home / "archive"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")} >= set(cold)
    assert not any((folder / path).exists() for path in first)
    assert breaks(archived) == []
    assert ask(archived, "SELECT count(*) AS n FROM audit_events") == [{"n": 6}]
    run(archived, NOW + timedelta(days=20 + 370))
    assert breaks(archived) == []
    rows = ask(archived, "SELECT min(sequence) AS first FROM audit_events")
    assert rows == [{"first": 7}]
    assert not any((folder / path).exists() for path in cold)
    # The checkpoints of removed files are links of the chain, so that a missing one is detected.
    platform.sql("DELETE FROM archive_files WHERE tenant_id = %s AND first_sequence = 1", [archived.id])
    assert [(broken.sequence, "archive" in broken.reason) for broken in breaks(archived)] == [(1, True)]


async def test_a_removed_user_is_anonymized_in_the_archive_and_the_chain_is_valid(
    platform: RunningPlatform, tenant: Tenant, past, run, breaks, ask, archive: Settings, tools
) -> None:
    await past(tenant, 120, 110)
    await past(tenant, 115, user_id=tenant.admin.id, ip="198.51.100.9")
    run(tenant)
    person = tenant.user.id
    before = ask(tenant, f"SELECT count(*) AS n FROM audit_events WHERE actor_id = '{person}' AND ip IS NOT NULL")
    assert before == [{"n": 2}]
    assert (await tenant.admin.client.delete(f"/api/admin/users/{person}")).status_code == 204
    await anonymise(tools, tenant_id=str(tenant.id), user_id=str(person))
    jobs.run(archive, platform.installed.url, platform.host.sealer, [], forgetting=[tenant.id], now=NOW)
    rows = ask(tenant, "SELECT actor_id, ip, salt FROM audit_events ORDER BY sequence")
    assert [(row["actor_id"], row["ip"], row["salt"] is None) for row in rows] == [
        (None, None, True), (None, None, True), (str(tenant.admin.id), "198.51.100.9", False),
    ]  # fmt: skip
    assert breaks(tenant) == []
    # The file with the user's entries was removed.
    file_names = [path.name for path in (archive.gatehouse_home / "archive").rglob("*.parquet")]
    assert len(file_names) == platform.sql("SELECT count(*) FROM archive_files WHERE tenant_id = %s", [tenant.id])[0][0]
    assert platform.sql("SELECT count(*) FROM archive_forgets WHERE tenant_id = %s", [tenant.id]) == [(0,)]


async def test_a_changed_file_is_not_rewritten_when_a_user_is_removed(
    platform: RunningPlatform, archived: Tenant, archive: Settings, breaks, run
) -> None:
    path = archive.gatehouse_home / "archive" / files(platform, archived)[0]
    table = parquet.read_table(path)
    changed = pa.array(["refused"] * table.num_rows, pa.string())
    parquet.write_table(table.set_column(table.column_names.index("outcome"), "outcome", changed), path)
    platform.sql("INSERT INTO archive_forgets VALUES (%s, %s)", [archived.id, archived.user.id])
    run(archived)
    assert platform.sql("SELECT status FROM archive_runs WHERE tenant_id = %s", [archived.id]) == [("failed",)]
    assert (breaks(archived)[0].sequence, path.exists()) == (1, True)


@pytest.mark.parametrize("archived", [False, True])
async def test_a_user_is_anonymized_even_if_their_creator_was_anonymized_before(
    platform: RunningPlatform, tenant: Tenant, breaks, ask, archive: Settings, run, tools, archived: bool
) -> None:
    """The changes were recorded in events whose salt is already removed."""
    maker = await platform.new_person(tenant.id, "admin")
    made = await maker.client.post("/api/admin/users", json={"email": "made@forgotten.example", "role": "user"})
    if archived:
        assert run(tenant, NOW + timedelta(days=120)) > 0
    for user_id in (str(maker.id), made.json()["id"]):
        await tenant.admin.client.delete(f"/api/admin/users/{user_id}")
        await anonymise(tools, tenant_id=str(tenant.id), user_id=user_id)
        jobs.run(archive, platform.installed.url, platform.host.sealer, [], forgetting=[tenant.id], now=NOW)
    rows = ask(tenant, "SELECT details FROM audit_events") + platform.sql(
        "SELECT details FROM audit_events WHERE tenant_id = %s", [tenant.id]
    )
    assert len(rows) == 3
    assert "made@forgotten.example" not in str(rows)
    assert breaks(tenant) == []
