"""`gatehouse archive query`: runs SQL on the archive with DuckDB, which has no other access to the machine."""

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.platform.records.archive.storage import manifest
from gatehouse.platform.records.archive.storage.contents import RECORDS, schema
from gatehouse.platform.records.archive.storage.manifest import Connection
from gatehouse.platform.records.archive.storage.places import ArchiveStorage

pa: Any = LazyModule("pyarrow")
duckdb: Any = LazyModule("duckdb")
dataset: Any = LazyModule("pyarrow.dataset")

#: Settings that isolate DuckDB. They are applied after the tables are registered. The last one prevents a query from
#: changing the settings.
_ISOLATION_SETTINGS: Final = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_BATCH_ROWS: Final = 1000


class BadQuery(Exception):
    """The statement cannot be run, or is not a query. The message is one line, usually the first line of
    DuckDB's error."""


def query(connection: Connection, storage: ArchiveStorage, sql: str, tenant_id: UUID | None = None) -> Iterator[Any]:
    """Yield the result as `pyarrow.RecordBatch` objects. Yields at least one batch, so that the caller learns the names
    of the columns: for an empty result, a batch without rows. Raises `BadQuery` and `OSError`."""
    engine = duckdb.connect(":memory:")
    try:
        for records in RECORDS:
            files = manifest.list_files(connection, tenant_id, records=records)
            paths = [storage.absolute(file.path) for file in files]
            columns = schema(records)
            data = dataset.dataset(paths, schema=columns, format="parquet", filesystem=storage.filesystem)
            engine.register(records, data if paths else columns.empty_table())
        for setting in _ISOLATION_SETTINGS:
            engine.execute(setting)
        try:
            reader = _result(engine, sql).to_arrow_reader(_BATCH_ROWS)
            first = next(reader, None)
            # If there are no rows, yield one empty batch that carries the names of the columns.
            yield pa.RecordBatch.from_pylist([], schema=reader.schema) if first is None else first
            yield from reader
        except duckdb.Error as error:
            raise BadQuery(str(error).split("\n", 1)[0]) from None
    finally:
        engine.close()


def _result(engine: Any, sql: str) -> Any:
    result = engine.sql(sql)
    if result is None:
        raise BadQuery("the statement is not a query: it has no result")
    return result
