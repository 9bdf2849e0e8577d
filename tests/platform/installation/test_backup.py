"""Backup and restore of an installation."""

import tarfile
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec
import psycopg
import pytest
from click.testing import CliRunner
from tests.support.platform import RunningPlatform

from gatehouse.cli.main import cli
from gatehouse.foundation.secrets.sealing import MasterKeys
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.tools import ToolFailed
from gatehouse.platform.installation import backup, setup
from gatehouse.platform.installation.backup import CannotRestore
from gatehouse.platform.installation.setup import Installation


class Make(Protocol):
    def __call__(self, *, prepared: bool = False) -> Installation: ...


def of_database(platform: RunningPlatform, name: str, home: Path) -> Installation:
    """Return an installation with this database of the running server, a separate home, and the server's master key."""
    url = platform.installed.owner_url.replace("/postgres?", f"/{name}?")
    home.mkdir()
    settings = platform.installed.settings.model_copy(update={"gatehouse_home": home})
    return Installation(settings, url, url, platform.installed.master_keys)


@pytest.fixture(scope="module")
def template(platform: RunningPlatform, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the name of a database that `prepare` has migrated. Tests copy it instead of migrating another one."""
    name = f"b_{uuid4().hex}"
    platform._owner.execute(f"CREATE DATABASE {name}")
    setup.prepare(of_database(platform, name, tmp_path_factory.mktemp("template") / name))
    return name


@pytest.fixture
def make(platform: RunningPlatform, template: str, tmp_path: Path) -> Make:
    """Create databases in the running server: empty ones, or `prepared` ones as after a first start."""

    def made(*, prepared: bool = False) -> Installation:
        name = f"b_{uuid4().hex}"
        platform._owner.execute(f"CREATE DATABASE {name} TEMPLATE {template if prepared else 'template1'}")
        return of_database(platform, name, tmp_path / name)

    return made


def rows(installed: Installation, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(installed.owner_url) as connection:
        return connection.execute(query).fetchall()


def counts(installed: Installation) -> dict[object, object]:
    tables = rows(installed, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {name: rows(installed, f"SELECT count(*) FROM {name}") for (name,) in tables}


def test_a_restored_database_equals_the_saved_one(make: Make, tmp_path: Path) -> None:
    first, second, file = make(prepared=True), make(), tmp_path / "saved.tar"
    writer = first.home / "journal" / str(uuid4())
    writer.mkdir(parents=True)
    (writer / "00000001.log").write_bytes(b"a record\n")
    backup.save(first, file)
    backup.load(second, file)
    assert counts(second) == counts(first)
    assert rows(second, "SELECT email, password_hash FROM users") == rows(
        first, "SELECT email, password_hash FROM users"
    )
    assert (second.home / "journal" / writer.name / "00000001.log").read_bytes() == b"a record\n"
    setup.check(second)
    # The access rights are restored too: the application's role sees nothing without a tenant.
    with psycopg.connect(second.owner_url) as connection:
        connection.execute("SET ROLE gatehouse_app")
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)


def test_revisions_after_a_restore_are_higher_than_lost_ones(make: Make, tmp_path: Path) -> None:
    """An outpost may have a later version than the restored one. It would refuse older versions, even with a kill
    switch."""
    installed, file = make(prepared=True), tmp_path / "saved.tar"
    backup.save(installed, file)
    with psycopg.connect(installed.owner_url) as connection:
        connection.execute("UPDATE revision_head SET revision = revision + 5000")
    ((lost,),) = rows(installed, "SELECT revision FROM revision_head")
    backup.load(installed, file, force=True)
    ((restored,),) = rows(installed, "SELECT revision FROM revision_head")
    assert isinstance(lost, int)
    assert isinstance(restored, int)
    assert restored > lost


def test_a_backup_is_readable_only_by_its_owner_and_contains_no_key(make: Make, tmp_path: Path) -> None:
    first, file = make(prepared=True), tmp_path / "saved.tar"
    backup.save(first, file)
    assert file.stat().st_mode & 0o077 == 0
    assert all(key not in file.read_bytes() for key in first.master_keys.keys.values())


def test_another_master_key_is_refused_before_any_change(make: Make, tmp_path: Path) -> None:
    first, second, file = make(prepared=True), make(), tmp_path / "saved.tar"
    backup.save(first, file)
    stranger = msgspec.structs.replace(second, master_keys=MasterKeys("other", {"other": b"x" * 32}))
    with pytest.raises(CannotRestore, match="master key"):
        backup.load(stranger, file)
    assert rows(second, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_an_installation_is_replaced_only_on_request(make: Make, tmp_path: Path) -> None:
    first, file = make(prepared=True), tmp_path / "saved.tar"
    backup.save(first, file)
    with psycopg.connect(first.owner_url) as connection:
        connection.execute("UPDATE tenants SET name = 'changed since'")
    with pytest.raises(CannotRestore, match="--force"):
        backup.load(first, file)
    backup.load(first, file, force=True)
    assert rows(first, "SELECT name FROM tenants") == [("Default",)]


def test_restoring_is_refused_while_processes_run(make: Make, tmp_path: Path) -> None:
    first, file = make(prepared=True), tmp_path / "saved.tar"
    backup.save(first, file)
    with psycopg.connect(first.owner_url) as connection:
        connection.execute("INSERT INTO nodes (id, name, pid, host) VALUES (gen_random_uuid(), 'n', 1, 'h')")
    with pytest.raises(CannotRestore, match="stop them"):
        backup.load(first, file, force=True)


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_a_file_that_is_not_a_backup_is_refused(make: Make, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.tar"
    file.write_bytes(content)
    with pytest.raises((CannotRestore, tarfile.TarError)):
        backup.load(make(), file)


def test_a_backup_can_be_restored_for_another_owner(make: Make, tmp_path: Path, platform: RunningPlatform) -> None:
    first, second, file = make(prepared=True), make(), tmp_path / "saved.tar"
    backup.save(first, file)
    owner, name = f"owner_{uuid4().hex}", urlsplit(second.url).path[1:]
    platform.sql(f"CREATE ROLE {owner} LOGIN CREATEROLE")
    platform.sql(f"GRANT gatehouse_app, gatehouse_service TO {owner}")
    platform.sql(f"ALTER DATABASE {name} OWNER TO {owner}")
    url = second.url.replace("postgres:@", f"{owner}@")
    moved = msgspec.structs.replace(second, url=url, owner_url=url)
    backup.load(moved, file)
    # The owner sees its tables, everything is restored, and the platform can serve.
    assert counts(moved) == counts(first)
    setup.prepare(moved)
    setup.check_roles(moved)
    backup.save(moved, tmp_path / "again.tar")
    with roles.connect(url, roles.APP_ROLE) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)


def test_a_login_that_cannot_read_every_row_makes_no_backup(
    make: Make, tmp_path: Path, platform: RunningPlatform
) -> None:
    installed, reader = make(prepared=True), f"reader_{uuid4().hex}"
    platform.sql(f"CREATE ROLE {reader} LOGIN")
    platform.sql(f"GRANT gatehouse_app, gatehouse_service TO {reader}")
    url = installed.url.replace("postgres:@", f"{reader}@")
    with pytest.raises(ToolFailed, match="set DATABASE_OWNER_URL to the login that migrates"):
        backup.save(msgspec.structs.replace(installed, owner_url=url), tmp_path / "saved.tar")
    assert list(tmp_path.glob("saved.tar*")) == []


def test_a_truncated_dump_replaces_nothing(make: Make, tmp_path: Path) -> None:
    installed, file, cut = make(prepared=True), tmp_path / "saved.tar", tmp_path / "cut.tar"
    backup.save(installed, file)
    with tarfile.open(file) as archive, tarfile.open(cut, "w") as broken:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            assert content is not None
            if member.name == "database.dump":
                member.size //= 2
            broken.addfile(member, content)
    before = counts(installed)
    with pytest.raises(ToolFailed):
        backup.load(installed, cut, force=True)
    assert counts(installed) == before


def test_records_of_the_journal_after_the_backup_are_kept(make: Make, tmp_path: Path) -> None:
    installed, file = make(prepared=True), tmp_path / "saved.tar"
    segment = installed.home / "journal" / str(uuid4()) / "00000001.log"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"a record\n")
    backup.save(installed, file)
    segment.write_bytes(b"a record\nanother\n")
    backup.load(installed, file, force=True)
    assert segment.read_bytes() == b"a record\nanother\n"


def test_an_existing_file_is_replaced_only_if_forced(make: Make, tmp_path: Path, platform: RunningPlatform) -> None:
    installed, file = make(prepared=True), tmp_path / "saved.tar"
    file.write_bytes(b"last week's")
    env = {
        "DATABASE_URL": installed.url,
        "GATEHOUSE_HOME": str(installed.home),
        "GATEHOUSE_MASTER_KEY": (platform.host.settings.gatehouse_home / "master.key").read_text(),
    }
    refused = CliRunner().invoke(cli, ["backup", str(file)], env=env)
    assert (refused.exit_code, file.read_bytes()) == (1, b"last week's")
    assert "--force replaces it" in refused.output
    done = CliRunner().invoke(cli, ["backup", "--force", str(file)], env=env)
    assert (done.exit_code, tarfile.is_tarfile(file)) == (0, True), done.output
