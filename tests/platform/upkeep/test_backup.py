"""Saving an installation and bringing it back."""

import tarfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import msgspec
import psycopg
import pytest
from tests.support.platform import RunningPlatform

from gatehouse.foundation.sealing import MasterKeys
from gatehouse.platform import installation
from gatehouse.platform.installation import Installation
from gatehouse.platform.upkeep import backup
from gatehouse.platform.upkeep.backup import CannotRestore

Make = Callable[[], Installation]


@pytest.fixture
def make(platform: RunningPlatform, tmp_path: Path) -> Make:
    """New empty databases in the running server, each with a home of its own and the same master key."""

    def made() -> Installation:
        name = f"b_{uuid4().hex}"
        platform._owner.execute(f"CREATE DATABASE {name}")
        url = platform.installed.owner_url.replace("/postgres?", f"/{name}?")
        home = tmp_path / name
        home.mkdir()
        settings = platform.installed.settings.model_copy(update={"gatehouse_home": home})
        return Installation(settings, url, url, platform.installed.master_keys)

    return made


def rows(installed: Installation, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(installed.owner_url) as connection:
        return connection.execute(query).fetchall()


def counts(installed: Installation) -> dict[object, object]:
    tables = rows(installed, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {name: rows(installed, f"SELECT count(*) FROM {name}") for (name,) in tables}


def test_what_was_saved_comes_back(make: Make, tmp_path: Path) -> None:
    first, second, file = make(), make(), tmp_path / "saved.tar"
    installation.prepare(first)
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
    installation.check(second)
    # The rights came with it: the application's role sees nothing without a tenant.
    with psycopg.connect(second.owner_url) as connection:
        connection.execute("SET ROLE gatehouse_app")
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)


def test_a_backup_is_readable_by_its_owner_alone_and_holds_no_key(make: Make, tmp_path: Path) -> None:
    first, file = make(), tmp_path / "saved.tar"
    installation.prepare(first)
    backup.save(first, file)
    assert file.stat().st_mode & 0o077 == 0
    assert all(key not in file.read_bytes() for key in first.master_keys.keys.values())


def test_another_master_key_is_refused_before_anything_is_changed(make: Make, tmp_path: Path) -> None:
    first, second, file = make(), make(), tmp_path / "saved.tar"
    installation.prepare(first)
    backup.save(first, file)
    stranger = msgspec.structs.replace(second, master_keys=MasterKeys("other", {"other": b"x" * 32}))
    with pytest.raises(CannotRestore, match="master key"):
        backup.load(stranger, file)
    assert rows(second, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_an_installation_is_replaced_only_when_told(make: Make, tmp_path: Path) -> None:
    first, file = make(), tmp_path / "saved.tar"
    installation.prepare(first)
    backup.save(first, file)
    with psycopg.connect(first.owner_url) as connection:
        connection.execute("UPDATE tenants SET name = 'changed since'")
    with pytest.raises(CannotRestore, match="--force"):
        backup.load(first, file)
    backup.load(first, file, force=True)
    assert rows(first, "SELECT name FROM tenants") == [("Default",)]


def test_nothing_is_restored_under_running_processes(make: Make, tmp_path: Path) -> None:
    first, file = make(), tmp_path / "saved.tar"
    installation.prepare(first)
    backup.save(first, file)
    with psycopg.connect(first.owner_url) as connection:
        connection.execute("INSERT INTO nodes (id, name, pid, host) VALUES (gen_random_uuid(), 'n', 1, 'h')")
    with pytest.raises(CannotRestore, match="stop them"):
        backup.load(first, file, force=True)


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_is_no_backup_is_refused(make: Make, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.tar"
    file.write_bytes(content)
    with pytest.raises((CannotRestore, tarfile.TarError)):
        backup.load(make(), file)
