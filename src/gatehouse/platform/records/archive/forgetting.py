"""Anonymizes removed people in the archive, as `gatehouse_anonymise` does in the database: rewrites the files that name
them. The chain's hashes do not cover the deleted values themselves. They cover a digest of the values, which is
kept."""

from collections.abc import Generator
from functools import partial
from typing import Any, Final
from uuid import UUID

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.platform.records.archive import verifying
from gatehouse.platform.records.archive.storage import files, manifest
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.writer import ArchiveWriter

pa: Any = LazyModule("pyarrow")
compute: Any = LazyModule("pyarrow.compute")

_MAX_PEOPLE_PER_PASS: Final = 1000


def forget(writer: ArchiveWriter, tenant_id: UUID) -> None:
    """Rewrite all files of the organization that name a person who is to be forgotten. Raises
    `UnderLegalHold` and `DamagedFile`."""
    waiting = "SELECT person_id::text FROM archive_forgets WHERE tenant_id = %s ORDER BY since LIMIT %s"
    while people := {row[0] for row in writer.connection.execute(waiting, [tenant_id, _MAX_PEOPLE_PER_PASS])}:
        for file in manifest.list_files(writer.connection, tenant_id, records="audit_events"):
            if _names(writer, file, people):
                # The new file gets a new seal. The old seal is checked first, so that a forged file does not become
                # valid.
                verifying.check(writer.sealer, writer.storage, file)
                anonymised_groups = partial(_anonymised_groups, writer, file, people)
                writer.store(tenant_id, "audit_events", file.tier, anonymised_groups, replaces=(file,))
        delete = "DELETE FROM archive_forgets WHERE tenant_id = %s AND person_id = ANY(%s::uuid[])"
        writer.connection.execute(delete, [tenant_id, list(people)])


def _names(writer: ArchiveWriter, file: ArchiveFile, people: set[str]) -> bool:
    """Return whether the file contains personal data of one of the people."""
    with writer.storage.open(file.path) as source:
        for group in files.columns(source, "actor_id", "resource_type", "resource_id", "salt", "details"):
            writer.check_stop()
            if any(_has_personal_data(row, people) for row in _candidates(group, people)):
                return True
    return False


def _candidates(group: Any, people: set[str]) -> list[dict[str, Any]]:
    """Return the rows that may contain personal data of one of the people."""
    ids = pa.array(sorted(people))
    names_person = compute.or_kleene(
        compute.is_in(group["actor_id"], value_set=ids), compute.is_in(group["resource_id"], value_set=ids)
    )
    rows: list[dict[str, Any]] = group.filter(names_person).to_pylist()
    return rows


def _has_personal_data(row: dict[str, Any], people: set[str]) -> bool:
    # The actor of the event may have been forgotten before. The salt was deleted then.
    about = _is_about(row, people) and (row["salt"] is not None or row["details"] != "{}")
    return about or row["actor_id"] in people


def _is_about(row: dict[str, Any], people: set[str]) -> bool:
    return row["resource_type"] == "user" and row["resource_id"] in people


def _anonymised_groups(writer: ArchiveWriter, file: ArchiveFile, people: set[str]) -> Generator[Any, None, None]:
    with writer.storage.open(file.path) as source:
        for group in files.read(source):
            if any(_has_personal_data(row, people) for row in _candidates(group, people)):
                yield pa.Table.from_pylist([_anonymised(row, people) for row in group.to_pylist()], schema=group.schema)
            else:
                yield group


def _anonymised(row: dict[str, Any], people: set[str]) -> dict[str, Any]:
    """Return the row in the form that `gatehouse_anonymise` would leave in the database."""
    if not _has_personal_data(row, people):
        return row
    about = _is_about(row, people)
    if row["actor_id"] in people or row["actor_id"] is None:
        row = {**row, "actor_id": None, "ip": None}
    return {**row, "details": "{}" if about else row["details"], "salt": None}
