"""Backs up an installation to one file, and restores it. The backup contains the database and the records of the
journal that are not in the database yet.

The master key is not in the file, so the secrets in a backup are sealed. A restore checks first that the present master
key opens them.

    meta.json          version, schema, time, ids of the master keys, and a sealed word for the check of the key
    database.dump      pg_dump's custom format
    journal/...        segments, copied right before the dump. The dump contains positions in the segments, so a record
    that is in both is not stored twice.
"""

import io
import tarfile
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import psycopg

from gatehouse import __version__
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage import migrate, roles, tools
from gatehouse.platform.installation import setup
from gatehouse.platform.installation.setup import Installation

_SEALED_WORD: Final = b"gatehouse backup"
_SEALING_CONTEXT: Final = b"backup"
#: A process is treated as running if its last heartbeat is at most this old.
_RUNNING_SECONDS: Final = 15
#: Number added to the revision after a restore. It exceeds any number of lost changes, because outposts refuse a policy
#: that is older than their own.
_SKIPPED_REVISIONS: Final = 1_000_000


class CannotRestore(Exception):
    """A backup cannot be restored. The message is one line with the reason and the remedy."""


class Meta(msgspec.Struct, kw_only=True):
    """The contents of the file `meta.json`."""

    version: str
    schema: str
    created_at: datetime
    master_key_ids: list[str]
    #: a sealed word; only the keys that open the other secrets of the backup open it
    sealed_word: str


def save(installed: Installation, target: Path) -> Meta:
    """Write a backup to `target`. The installation may serve requests meanwhile. Raises `ToolFailed` and `OSError`."""
    setup.check(installed)
    keys = installed.master_keys
    meta = Meta(
        version=__version__,
        # The schema of the database, which may be newer than the schema of this version.
        schema=migrate.current(installed.url) or "",
        created_at=utc_now(),
        master_key_ids=sorted(keys.keys),
        sealed_word=str(Sealer(keys.keys, keys.current).seal(_SEALED_WORD, context=_SEALING_CONTEXT)),
    )
    unfinished = target.with_name(target.name + ".part")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    try:
        _write(installed, meta, unfinished)
        unfinished.replace(target)
    except tools.ToolFailed as error:
        raise tools.ToolFailed(f"{error}{_ownership_hint(installed)}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return meta


def _ownership_hint(installed: Installation) -> str:
    """Return a hint if the login does not own the tables, else an empty string. The message of pg_dump does not explain
    this cause."""
    with psycopg.connect(installed.owner_url) as connection:
        owns = connection.execute(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('tenants')"
        ).fetchone()
    return "" if owns != (False,) else "; set DATABASE_OWNER_URL to the login that migrates: it owns the tables"


def _write(installed: Installation, meta: Meta, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.absolute().parent) as scratch, tarfile.open(target, "w") as archive:
        _add_bytes(archive, "meta.json", msgspec.json.encode(meta))
        # The journal is copied before the dump. A record that is drained in between is then in both, and the positions
        # in the dump show that it was stored already.
        journal = installed.home / "journal"
        for segment in sorted(journal.glob("*/*.log")) if journal.is_dir() else ():
            try:
                _add_bytes(archive, f"journal/{segment.parent.name}/{segment.name}", segment.read_bytes())
            except FileNotFoundError:
                continue  # The segment was drained and deleted in the meantime, so the dump has its records.
        dump = Path(scratch) / "database.dump"
        tools.pg_dump(installed.owner_url, dump)
        archive.add(dump, "database.dump")


def load(installed: Installation, source: Path, *, force: bool = False) -> Meta:
    """Restore the backup in `source`. Without `force`, the database must be empty. With `force`, the contents of the
    database are dropped. Raises `CannotRestore`, `ToolFailed` and `OSError`.
    """
    with tarfile.open(source) as archive, tempfile.TemporaryDirectory(dir=installed.home) as scratch:
        meta = _read_meta(archive)
        _check_keys(installed, meta)
        # The filter refuses names outside the folder, because the archive may come from elsewhere.
        archive.extractall(scratch, filter="data")
        dump = Path(scratch) / "database.dump"
        # The dump is checked before the contents of the database are dropped.
        tools.check_dump(dump)
        _clear_database(installed, force=force)
        tools.pg_restore(installed.owner_url, dump)
        _restore_journal(Path(scratch) / "journal", installed.home / "journal")
    # Migrates the schema if the backup comes from an older version.
    setup.prepare(installed)
    with psycopg.connect(installed.owner_url) as connection:
        connection.execute("UPDATE revision_head SET revision = revision + %s", [_SKIPPED_REVISIONS])
    return meta


def _restore_journal(saved: Path, journal: Path) -> None:
    for segment in sorted(saved.glob("*/*.log")):
        target = journal / segment.parent.name / segment.name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Segments only grow. On the machine where the backup was made, the existing segment may contain later records.
        if not target.exists() or target.stat().st_size < segment.stat().st_size:
            segment.replace(target)


def _read_meta(archive: tarfile.TarFile) -> Meta:
    try:
        member = archive.extractfile("meta.json")
        assert member is not None
        return msgspec.json.decode(member.read(), type=Meta)
    except (KeyError, msgspec.MsgspecError):
        raise CannotRestore("the file is not a backup of Gatehouse") from None


def _check_keys(installed: Installation, meta: Meta) -> None:
    keys = installed.master_keys
    try:
        Sealer(keys.keys, keys.current).open(meta.sealed_word, context=_SEALING_CONTEXT)
    except CannotOpen:
        raise CannotRestore(
            "the current master key does not open this backup's secrets; set GATEHOUSE_MASTER_KEY to the key with the"
            f" id {' or '.join(meta.master_key_ids)}"
        ) from None


def _clear_database(installed: Installation, *, force: bool) -> None:
    with psycopg.connect(installed.owner_url) as connection:
        if connection.execute("SELECT to_regclass('nodes')").fetchone() != (None,):
            running = connection.execute(
                "SELECT count(*) FROM nodes WHERE seen_at > now() - make_interval(secs => %s)", [_RUNNING_SECONDS]
            ).fetchone()
            if running != (0,):
                raise CannotRestore("processes are using this database; stop them first")
            if not force:
                raise CannotRestore("this database already contains an installation; pass --force to replace it")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        # The dump grants rights to roles. It does not create the roles, because roles belong to the database server.
        connection.execute(roles.CREATE_ROLES_SQL.read_bytes())


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))
