"""The archiver is killed at every step. It loses no record and archives no record twice."""

import json
import subprocess
import sys
from base64 import b64encode
from datetime import timedelta

import pytest
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.records.archive.storage import files
from gatehouse.platform.records.archive.storage.contents import RECORDS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("later", [0, 45, 500, 4000])
async def test_no_record_is_lost_if_the_archiver_is_killed_at_any_step(
    platform: RunningPlatform, tenant: Tenant, archive: Settings, past, ask, run, breaks, later: int, monkeypatch
) -> None:
    """This covers the first run, the run that joins a month's files, the run that moves them to cold storage, and the
    run that removes them."""
    await past(tenant, *(110 - item for item in range(9)))
    ids = {}
    for records in RECORDS:
        rows = platform.sql(f"SELECT id::text FROM {records} WHERE tenant_id = %s", [tenant.id])
        ids[records] = [row[0] for row in rows]
    if later:
        monkeypatch.setattr(files, "MAX_FILE_ROWS", 3)
        run(tenant)
        platform.sql("INSERT INTO archive_forgets VALUES (%s, %s)", [tenant.id, tenant.user.id])
    keys = platform.installed.master_keys
    task = {
        "environment": {"GATEHOUSE_HOME": str(archive.gatehouse_home), "ARCHIVE_URL": archive.archive_url},
        "keys": {name: b64encode(key).decode() for name, key in keys.keys.items()}, "current": keys.current,
        "url": platform.installed.owner_url, "tenant": str(tenant.id), "now": (NOW + timedelta(days=later)).isoformat(),
        "ids": ids if later < 4000 else {},
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.platform.records.archive.killed"], input=json.dumps(task), text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["runs"] > 20
    assert breaks(tenant) == []
    gone = later == 4000
    for records in RECORDS:
        archived = [row["id"] for row in ask(tenant, f"SELECT id FROM {records}")]
        assert sorted(archived) == ([] if gone else sorted(ids[records]))
        assert platform.sql(f"SELECT count(*) FROM {records} WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    # No unfinished files remain, and no counts of the archived records remain in the database.
    kept = platform.sql("SELECT path FROM archive_files WHERE tenant_id = %s AND state = 'kept'", [tenant.id])
    folder = archive.gatehouse_home / "archive"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {row[0] for row in kept}
    platform.sql("SELECT gatehouse_fold_usage_counts()")
    for table in ("usage_counts", "usage_count_deltas", "usage_totals", "usage_hour_totals"):
        assert platform.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    assert platform.sql("SELECT count(*) FROM archive_forgets WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    if later == 45:
        assert platform.sql("SELECT max(rows) FROM archive_files WHERE tenant_id = %s", [tenant.id]) == [(6,)]
    if later in {45, 500}:
        assert ask(tenant, "SELECT count(actor_id) AS n FROM audit_events") == [{"n": 0}]
