"""Which schemas a version accepts. The tests add revisions after the real ones."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.support.platform import RunningPlatform

from gatehouse.foundation.storage import migrate
from gatehouse.foundation.storage.migrate import SchemaDrift
from gatehouse.platform.installation import setup
from gatehouse.platform.installation.setup import Installation
from gatehouse.platform.migrations import SCRIPTS

Make = Callable[[], str]


@pytest.fixture
def make(platform: RunningPlatform) -> Make:
    """Returns a function that creates an empty database and returns its URL."""

    def made() -> str:
        name = f"m_{uuid4().hex}"
        platform.sql(f"CREATE DATABASE {name}")
        return platform.installed.owner_url.replace("/postgres?", f"/{name}?")

    return made


def newer(directory: Path, *statements: str) -> Path:
    """Returns the scripts of a version with one more revision."""
    scripts = directory / "migrations"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    body = "\n".join(f"    op.execute({statement!r})" for statement in statements) or "    pass"
    (scripts / "versions" / "r9999_newer.py").write_text(
        f"from alembic import op\n\nrevision = '9999'\ndown_revision = {migrate.head(SCRIPTS)!r}\n\n\n"
        f"def upgrade():\n{body}\n"
    )
    return scripts


def test_a_newer_schema_that_names_this_version_is_accepted(make: Make, tmp_path: Path) -> None:
    url, own_head = make(), migrate.head(SCRIPTS)
    migrate.upgrade(url, newer(tmp_path, f"UPDATE schema_compatibility SET serves = '{{{own_head}}}'"))
    migrate.check(url, SCRIPTS)
    # `migrate` of an older version does not change the schema.
    migrate.upgrade(url, SCRIPTS)
    assert migrate.current(url) == "9999"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "UPDATE schema_compatibility SET serves = '{0000}'",
        "DELETE FROM schema_compatibility",
        "DROP TABLE schema_compatibility",
    ],
)
def test_a_newer_schema_that_does_not_name_this_version_is_refused(make: Make, tmp_path: Path, statement: str) -> None:
    url = make()
    migrate.upgrade(url, newer(tmp_path, statement))
    for refused in (migrate.check, migrate.upgrade):
        with pytest.raises(SchemaDrift, match="install a newer one"):
            refused(url, SCRIPTS)


def test_an_unreadable_compatibility_table_is_no_declaration(
    make: Make, tmp_path: Path, platform: RunningPlatform
) -> None:
    url, name = make(), f"login_{uuid4().hex}"
    serves = f"UPDATE schema_compatibility SET serves = '{{{migrate.head(SCRIPTS)}}}'"
    migrate.upgrade(url, newer(tmp_path, serves))
    platform.sql(f"CREATE ROLE {name} LOGIN")
    login = url.replace("postgres:@", f"{name}@")
    with pytest.raises(SchemaDrift, match="GRANT gatehouse_app"):
        migrate.check(login, SCRIPTS)
    with psycopg.connect(url) as owner:
        owner.execute(f"GRANT USAGE ON SCHEMA public TO {name}".encode())
        owner.execute(f"GRANT SELECT ON alembic_version TO {name}".encode())
    with pytest.raises(SchemaDrift, match="install a newer one"):
        migrate.check(login, SCRIPTS)


def test_an_empty_or_older_schema_asks_for_migrate(make: Make, tmp_path: Path) -> None:
    url = make()
    with pytest.raises(SchemaDrift, match="no revision, this version needs"):
        migrate.check(url, SCRIPTS)
    migrate.upgrade(url, SCRIPTS)
    with pytest.raises(SchemaDrift, match="needs 9999: run gatehouse migrate"):
        migrate.check(url, newer(tmp_path))


def test_concurrent_first_starts_create_one_installation(make: Make, platform: RunningPlatform) -> None:
    url, running = make(), platform.installed
    installed = Installation(running.settings, url, url, running.master_keys)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: setup.prepare(installed), range(4)))
    with psycopg.connect(url) as connection:
        for table in ("tenants", "users", "signing_keys"):
            assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (1,)
