"""An archive in a bucket of a local S3 server."""

from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer
from tests.platform.records.archive.conftest import NOW
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings
from gatehouse.platform.records.archive.storage.places import Bucket


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield running.get_host_and_port()
    running.stop()


@pytest.fixture
def archive(platform: RunningPlatform, server: tuple[str, int], tmp_path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("s3", endpoint_url=f"http://{server[0]}:{server[1]}", region_name="us-east-1")
    client.create_bucket(Bucket="records")
    url = f"s3://records/archive?region=us-east-1&scheme=http&endpoint_override={server[0]}%3A{server[1]}"
    return platform.installed.settings.model_copy(update={"archive_url": url, "gatehouse_home": tmp_path})


async def test_records_are_archived_queried_verified_and_removed_in_a_bucket(
    platform: RunningPlatform, tenant: Tenant, past, run, ask, breaks, archive: Settings
) -> None:
    ids = await past(tenant, 120, 110)
    assert run(tenant) == 6
    assert platform.sql("SELECT count(*) FROM audit_events WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    assert {row["id"] for row in ask(tenant, "SELECT id FROM usage_records")} == set(map(str, ids))
    assert breaks(tenant) == []
    await tenant.admin.client.put("/api/v1/admin/retention/policy", json={"warm_retention_days": 0})
    run(tenant, NOW)
    assert {row["n"] for row in ask(tenant, "SELECT count(*) AS n FROM usage_records")} == {2}
    tiers = platform.sql("SELECT DISTINCT tier FROM archive_files WHERE tenant_id = %s", [tenant.id])
    assert tiers == [("cold",)]
    assert breaks(tenant) == []


async def test_removing_a_missing_file_is_no_error(archive: Settings) -> None:
    assert archive.archive_url is not None
    bucket = Bucket(archive.archive_url)
    bucket.remove("nothing/here.parquet")
    with pytest.raises(FileNotFoundError):
        bucket.open("nothing/here.parquet")


async def test_no_record_is_removed_if_the_bucket_is_missing(
    platform: RunningPlatform, tenant: Tenant, past, run, archive: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await past(tenant, 120)
    url = str(archive.archive_url).replace("records", "elsewhere")
    monkeypatch.setattr(archive, "__dict__", {**archive.__dict__, "archive_url": url})
    run(tenant)
    assert platform.sql("SELECT status FROM archive_runs WHERE tenant_id = %s", [tenant.id]) == [("failed",)]
    assert platform.sql("SELECT count(*) FROM usage_records WHERE tenant_id = %s", [tenant.id]) == [(1,)]
