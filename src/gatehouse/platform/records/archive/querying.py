"""`gatehouse archive query`: SQL over the archive with DuckDB, which sees nothing else of the machine."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from gatehouse.foundation.lazily import Lazily
from gatehouse.platform.records.archive import manifest
from gatehouse.platform.records.archive.contents import RECORDS, schema
from gatehouse.platform.records.archive.manifest import Connection
from gatehouse.platform.records.archive.places import Place

pa: Any = Lazily("pyarrow")
duckdb: Any = Lazily("duckdb")
dataset: Any = Lazily("pyarrow.dataset")

#: Once the views are there. Without the last, a query could take the others back.
_SHUT: Final = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_BATCH: Final = 1000


class BadQuery(Exception):
    """DuckDB's word on it, in one line."""


def query(connection: Connection, place: Place, sql: str, tenant_id: UUID | None = None) -> Iterator[Any]:
    """The result as `pyarrow.RecordBatch`es, at least one: it names the columns. Raises `BadQuery`, `OSError`."""
    engine = duckdb.connect(":memory:")
    try:
        for records in RECORDS:
            files = manifest.kept(connection, tenant_id, records=records)
            paths = [place.absolute(file.path) for file in files]
            wanted = schema(records)
            held = dataset.dataset(paths, schema=wanted, format="parquet", filesystem=place.filesystem)
            engine.register(records, held if paths else wanted.empty_table())
        for setting in _SHUT:
            engine.execute(setting)
        try:
            reader = _result(engine, sql).to_arrow_reader(_BATCH)
            first = next(reader, None)
            # Of nothing, too, the names of the columns.
            yield pa.RecordBatch.from_pylist([], schema=reader.schema) if first is None else first
            yield from reader
        except duckdb.Error as error:
            raise BadQuery(str(error).split("\n", 1)[0]) from None
    finally:
        engine.close()


def _result(engine: Any, sql: str) -> Any:
    result = engine.sql(sql)
    if result is None:
        raise BadQuery("that is no query: it answers with nothing")
    return result
