"""One file that holds an installation: the database, the journal's undrained records, and what recognises the keys.

The master key is not in it: whoever finds a backup finds sealed secrets only. A restore asks for the key first.

    meta.json          version, schema, time, which master keys there were, a sealed word to try them on
    database.dump      pg_dump's custom format
    journal/...        segments, as they were right before the dump: what of them the dump already has is known by the
                       positions in it, so nothing is stored twice
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
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.foundation.storage import migrate, roles, tools
from gatehouse.platform import installation
from gatehouse.platform.installation import Installation

_WORD: Final = b"gatehouse backup"
_CONTEXT: Final = b"backup"
#: seconds within which a process was seen that is then taken to be running
_RUNNING_SECONDS: Final = 15
#: more revisions than can be lost with what changed after the backup: an outpost refuses a policy older than its own
_PASSED_OVER: Final = 1_000_000


class CannotRestore(Exception):
    """One line: why not, and what to do."""


class Meta(msgspec.Struct, kw_only=True):
    version: str
    schema: str
    created_at: datetime
    master_key_ids: list[str]
    #: opens only under the keys that open everything else
    sealed_word: str


def save(installed: Installation, target: Path) -> Meta:
    """Writes the file; serving goes on meanwhile. Raises `ToolFailed`, `OSError`."""
    installation.check(installed)
    keys = installed.master_keys
    meta = Meta(
        version=__version__,
        # What is dumped: it may be newer than this version, which serves on it.
        schema=migrate.current(installed.url) or "",
        created_at=utc_now(),
        master_key_ids=sorted(keys.keys),
        sealed_word=str(Sealer(keys.keys, keys.current).seal(_WORD, context=_CONTEXT)),
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
    """What to do if the login does not own the tables, which pg_dump's message does not explain; else nothing."""
    with psycopg.connect(installed.owner_url) as connection:
        owns = connection.execute(
            "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('tenants')"
        ).fetchone()
    return "" if owns != (False,) else "; set DATABASE_OWNER_URL to the login that migrates: it owns the tables"


def _write(installed: Installation, meta: Meta, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.absolute().parent) as scratch, tarfile.open(target, "w") as archive:
        _add_bytes(archive, "meta.json", msgspec.json.encode(meta))
        # The journal first: a record that is drained after this is then in both, and known to be.
        journal = installed.home / "journal"
        for segment in sorted(journal.glob("*/*.log")) if journal.is_dir() else ():
            try:
                _add_bytes(archive, f"journal/{segment.parent.name}/{segment.name}", segment.read_bytes())
            except FileNotFoundError:
                continue  # drained and deleted meanwhile: the dump has it
        dump = Path(scratch) / "database.dump"
        tools.pg_dump(installed.owner_url, dump)
        archive.add(dump, "database.dump")


def load(installed: Installation, source: Path, *, force: bool = False) -> Meta:
    """Brings the file's installation back. `force` drops what the database holds; without it that must be nothing.

    Raises `CannotRestore`, `ToolFailed`, `OSError`.
    """
    with tarfile.open(source) as archive, tempfile.TemporaryDirectory(dir=installed.home) as scratch:
        meta = _read_meta(archive)
        _check_keys(installed, meta)
        # Names are looked at again by the filter: an archive from elsewhere writes nothing outside the folder.
        archive.extractall(scratch, filter="data")
        dump = Path(scratch) / "database.dump"
        # Before anything is dropped for it.
        tools.check_dump(dump)
        _make_room(installed, force=force)
        tools.pg_restore(installed.owner_url, dump)
        _bring_journal(Path(scratch) / "journal", installed.home / "journal")
    # An older version's backup is brought to this version's schema.
    installation.prepare(installed)
    with psycopg.connect(installed.owner_url) as connection:
        connection.execute("UPDATE revision_head SET revision = revision + %s", [_PASSED_OVER])
    return meta


def _bring_journal(saved: Path, journal: Path) -> None:
    for segment in sorted(saved.glob("*/*.log")):
        place = journal / segment.parent.name / segment.name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Segments only grow: the one that is here, on the machine that was saved, may have records since.
        if not place.exists() or place.stat().st_size < segment.stat().st_size:
            segment.replace(place)


def _read_meta(archive: tarfile.TarFile) -> Meta:
    try:
        member = archive.extractfile("meta.json")
        assert member is not None
        return msgspec.json.decode(member.read(), type=Meta)
    except (KeyError, msgspec.MsgspecError):
        raise CannotRestore("this is no backup of Gatehouse") from None


def _check_keys(installed: Installation, meta: Meta) -> None:
    keys = installed.master_keys
    try:
        Sealer(keys.keys, keys.current).open(meta.sealed_word, context=_CONTEXT)
    except CannotOpen:
        raise CannotRestore(
            "the master key at hand does not open this backup's secrets; set GATEHOUSE_MASTER_KEY to the key with the"
            f" id {' or '.join(meta.master_key_ids)}"
        ) from None


def _make_room(installed: Installation, *, force: bool) -> None:
    with psycopg.connect(installed.owner_url) as connection:
        if connection.execute("SELECT to_regclass('nodes')").fetchone() != (None,):
            running = connection.execute(
                "SELECT count(*) FROM nodes WHERE seen_at > now() - make_interval(secs => %s)", [_RUNNING_SECONDS]
            ).fetchone()
            if running != (0,):
                raise CannotRestore("processes are serving on this database; stop them first")
            if not force:
                raise CannotRestore("this database holds an installation; --force replaces it")
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        # The dump grants rights to roles, which belong to the server and not to the database.
        connection.execute(roles.CREATE_ROLES_SQL.read_bytes())


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))
