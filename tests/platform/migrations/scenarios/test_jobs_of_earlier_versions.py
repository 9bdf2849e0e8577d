"""Jobs that an earlier version has queued in procrastinate's tables."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
from alembic import command
from procrastinate.schema import SchemaManager
from sqlalchemy import create_engine
from tests.support.platform import RunningPlatform

from gatehouse.foundation.storage import migrate, roles
from gatehouse.foundation.storage.database import sqlalchemy_url
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.migrations import SCRIPTS

RUN_AT = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)


def upgrade_to_0005(url: str) -> None:
    engine = create_engine(sqlalchemy_url(url))
    with engine.begin() as connection:
        config = migrate._config(url, SCRIPTS)
        config.attributes["connection"] = connection
        command.upgrade(config, "0005")
        # Like revision 0001 of those versions.
        cursor = connection.connection.cursor()
        cursor.execute(SchemaManager.get_schema())
        cursor.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON procrastinate_jobs, procrastinate_events,"
            " procrastinate_periodic_defers, procrastinate_workers TO gatehouse_service"
        )
    engine.dispose()


def queue(
    connection: psycopg.Connection, task: str, status: str = "todo", *, silent_minutes: int = 0
) -> tuple[str, str]:
    """Queue a job like those versions. Return the ids of the organization and the user."""
    tenant, user = str(uuid4()), str(uuid4())
    worker = connection.execute(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(mins => %s)) RETURNING id",
        [silent_minutes],
    ).fetchone()
    assert worker is not None
    connection.execute(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, scheduled_at, worker_id) VALUES"
        " ('default', %s, jsonb_build_object('tenant_id', %s::text, 'user_id', %s::text), 'todo', %s, %s)",
        [task, tenant, user, RUN_AT if status == "todo" else None, None],
    )
    connection.execute(
        "UPDATE procrastinate_jobs SET status = %s::procrastinate_job_status, worker_id = %s"
        " WHERE args->>'user_id' = %s",
        [status, worker[0] if status == "doing" else None, user],
    )
    return tenant, user


def jobs(connection: psycopg.Connection) -> set[tuple[str, str]]:
    rows = connection.execute(
        "SELECT org_id::text, args->>'user_id', kind, status, run_at = %s OR run_at <= now(), args ? 'tenant_id',"
        " lane = id::text FROM jobs",
        [RUN_AT],
    ).fetchall()
    assert {row[2:] for row in rows} <= {("access.anonymise", "queued", True, False, True)}
    return {row[:2] for row in rows}


def test_queued_jobs_and_those_of_dead_workers_are_taken_over(platform: RunningPlatform) -> None:
    name = f"m_{uuid4().hex}"
    platform.sql(f"CREATE DATABASE {name}")
    url = platform.installed.owner_url.replace("/postgres?", f"/{name}?")
    upgrade_to_0005(url)
    with psycopg.connect(url, autocommit=True) as owner:
        waiting, older = queue(owner, "access.anonymise"), queue(owner, "scim.anonymise")
        abandoned = queue(owner, "access.anonymise", "doing", silent_minutes=5)
        running = queue(owner, "access.anonymise", "doing")
        queue(owner, "access.anonymise", "failed")
        queue(owner, "keeper.prune")
        migrate.upgrade(url, SCRIPTS)
        assert jobs(owner) == {waiting, older, abandoned}
        # Such a version runs at the same time as this one, and continues to queue jobs.
        late = queue(owner, "access.anonymise")
        for _ in range(2):
            with roles.connect(url, SERVICE_ROLE) as service:
                service.execute("SELECT gatehouse_take_over_jobs()")
        assert jobs(owner) == {waiting, older, abandoned, late}
        left = owner.execute("SELECT args->>'user_id', status::text FROM procrastinate_jobs WHERE status = 'doing'")
        assert left.fetchall() == [(running[1], "doing")]
