"""An archive for one test, and old records."""

import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.support.journal import Journal, outcome
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.engine.records.outcome import DlpEvent
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import roles
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.records.archive import jobs
from gatehouse.platform.records.archive.querying import query
from gatehouse.platform.records.archive.storage.places import archive_storage
from gatehouse.platform.records.audit.checking import Break
from gatehouse.platform.records.audit.verify import Verifier

NOW = datetime.now(UTC)


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    """A new organization with the default windows."""
    return await platform.new_tenant()


@pytest.fixture
async def journal(platform: RunningPlatform, tmp_path: Path) -> AsyncIterator[Journal]:
    made = Journal(platform.installed.url, tmp_path / "journal")
    yield made
    await made.killed()


@pytest.fixture
def archive(platform: RunningPlatform, tmp_path: Path) -> Settings:
    """The settings with an archive in the test's own folder."""
    return platform.installed.settings.model_copy(
        update={"archive_url": f"file://{tmp_path}/archive", "gatehouse_home": tmp_path}
    )


@pytest.fixture
def run(platform: RunningPlatform, archive: Settings) -> Callable[..., int]:
    """Run the archiver for an organization at the given time. Return the number of archived rows."""

    def ran(tenant: Tenant, now: datetime = NOW, stop: threading.Event | None = None) -> int:
        return jobs.run(archive, platform.installed.url, platform.host.sealer, [tenant.id], now=now, stop=stop)

    return ran


@pytest.fixture
def ask(platform: RunningPlatform, archive: Settings) -> Callable[..., list[dict[str, Any]]]:
    """Return the rows of a query of the tenant's archive."""

    def query_rows(tenant: Tenant, sql: str) -> list[dict[str, Any]]:
        with roles.connect(platform.installed.url, roles.SERVICE_ROLE) as connection:
            batches = query(connection, archive_storage(archive), sql, tenant.id)
            return [row for batch in batches for row in batch.to_pylist()]

    return query_rows


@pytest.fixture
def breaks(platform: RunningPlatform, archive: Settings) -> Callable[[Tenant], list[Break]]:
    """Return the positions at which the tenant's audit chain is broken, over database and archive together."""

    def find_breaks(tenant: Tenant) -> list[Break]:
        verifier = Verifier(platform.installed.url, platform.host.sealer, archive_storage(archive))
        try:
            return [gap for chain in verifier.chains(tenant.slug) for gap in verifier.breaks(chain)]
        finally:
            verifier.close()

    return find_breaks


@pytest.fixture
async def past(journal: Journal, platform: RunningPlatform) -> Callable[..., Any]:
    """Insert requests that are this many days old, each with a usage record, an audit event and a DLP event."""

    async def made(tenant: Tenant, *days: float, **fields: Any) -> list[UUID]:
        result = DlpEvent(
            rule_id=None, rule_name="a rule", detector_type="pattern", entity_type="EMAIL", direction="input",
            status="logged", score=0.9, match_count=2, action="log_only", severity="low", source="platform",
        )  # fmt: skip
        entries = [
            outcome(
                tenant.id, timestamp=(NOW - timedelta(days=day)).timestamp(),
                **{"user_id": tenant.user.id, "dlp_events": [result], **fields},
            )
            for day in days
        ]  # fmt: skip
        await journal.append(*entries)
        await journal.drain()
        return [entry.id for entry in entries]

    return made


@pytest.fixture
def tools(platform: RunningPlatform) -> Tools:
    return tools_of(platform.host)
