"""People who were removed leave the archive as they left the database (`gatehouse_anonymise`): the files that name them
are written anew. What is taken out is in no hash; a digest of it is, and stays."""

from collections.abc import Generator
from functools import partial
from typing import Any, Final
from uuid import UUID

from gatehouse.foundation.lazily import Lazily
from gatehouse.platform.records.archive import files, manifest, verifying
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.workshop import Workshop

pa: Any = Lazily("pyarrow")
compute: Any = Lazily("pyarrow.compute")

#: People that one pass looks for.
_PEOPLE: Final = 1000


def forget(shop: Workshop, tenant_id: UUID) -> None:
    """Once the answer is there, no file names anybody who was to be forgotten when it began. Raises `Held`,
    `Unsound`."""
    waiting = "SELECT person_id::text FROM archive_forgets WHERE tenant_id = %s ORDER BY since LIMIT %s"
    while people := {row[0] for row in shop.connection.execute(waiting, [tenant_id, _PEOPLE])}:
        for file in manifest.kept(shop.connection, tenant_id, records="audit_events"):
            if _names(shop, file, people):
                # What is written anew is sealed anew: a forged file must not become a true one by it.
                verifying.check(shop.sealer, shop.place, file)
                without = partial(_without, shop, file, people)
                shop.store(tenant_id, "audit_events", file.tier, without, instead_of=(file,))
        done = "DELETE FROM archive_forgets WHERE tenant_id = %s AND person_id = ANY(%s::uuid[])"
        shop.connection.execute(done, [tenant_id, list(people)])


def _names(shop: Workshop, file: File, people: set[str]) -> bool:
    with shop.place.open(file.path) as source:
        for group in files.columns(source, "actor_id", "resource_type", "resource_id", "salt", "details"):
            shop.go_on()
            if any(_named(row, people) for row in _suspects(group, people)):
                return True
    return False


def _suspects(group: Any, people: set[str]) -> list[dict[str, Any]]:
    wanted = pa.array(sorted(people))
    by_either = compute.or_kleene(
        compute.is_in(group["actor_id"], value_set=wanted), compute.is_in(group["resource_id"], value_set=wanted)
    )
    rows: list[dict[str, Any]] = group.filter(by_either).to_pylist()
    return rows


def _named(row: dict[str, Any], people: set[str]) -> bool:
    # Whoever made the event may have been forgotten before, and its salt with them.
    about = _about(row, people) and (row["salt"] is not None or row["details"] != "{}")
    return about or row["actor_id"] in people


def _about(row: dict[str, Any], people: set[str]) -> bool:
    return row["resource_type"] == "user" and row["resource_id"] in people


def _without(shop: Workshop, file: File, people: set[str]) -> Generator[Any, None, None]:
    with shop.place.open(file.path) as source:
        for group in files.read(source):
            if any(_named(row, people) for row in _suspects(group, people)):
                yield pa.Table.from_pylist([_forgotten(row, people) for row in group.to_pylist()], schema=group.schema)
            else:
                yield group


def _forgotten(row: dict[str, Any], people: set[str]) -> dict[str, Any]:
    """As the database's function leaves a row."""
    if not _named(row, people):
        return row
    about = _about(row, people)
    if row["actor_id"] in people or row["actor_id"] is None:
        row = {**row, "actor_id": None, "ip": None}
    return {**row, "details": "{}" if about else row["details"], "salt": None}
