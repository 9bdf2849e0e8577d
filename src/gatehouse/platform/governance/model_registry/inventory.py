"""Exports the registry as a file. Rows are read in batches and serialized in a thread, so that the event loop is not
blocked by twenty thousand entries."""

import asyncio
import csv
import io
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.platform.governance.model_registry import service, table, usage, variants
from gatehouse.platform.governance.model_registry.schemas import RegisteredModel
from gatehouse.platform.governance.model_registry.table import RegisteredModelRow, RegistryFilters
from gatehouse.platform.governance.model_registry.usage import UNUSED, ModelName, Use
from gatehouse.platform.governance.model_registry.variants import Sheet

#: Characters that begin a formula in a spreadsheet.
_FORMULA_PREFIXES: Final = ("=", "+", "-", "@", "\t", "\r")
_ENTRIES: Final = TypeAdapter(list[RegisteredModel])


class InventoryFile(NamedTuple):
    content: bytes
    media_type: str
    #: File name for the download; None if the browser displays the content.
    filename: str | None


async def export(session: AsyncSession, filters: RegistryFilters, variant: Variant, format: str) -> InventoryFile:
    """Return the filtered registry as CSV or JSON (`format`), newest first."""
    uses = await usage.by_model(session)
    if format == "json":
        entries = [
            entry
            async for batch in table.all_models(session, filters)
            for entry in await asyncio.to_thread(_entries, batch, uses, variant)
        ]
        return InventoryFile(await asyncio.to_thread(_ENTRIES.dump_json, entries), "application/json", None)
    sheet = variants.sheet(variant, utc_now().date())
    parts = [
        await asyncio.to_thread(_csv_rows, batch, uses, sheet) async for batch in table.all_models(session, filters)
    ]
    return InventoryFile("".join([_csv([sheet.columns]), *parts]).encode(), "text/csv; charset=utf-8", sheet.filename)


def _entries(rows: Sequence[RegisteredModelRow], uses: dict[ModelName, Use], variant: Variant) -> list[RegisteredModel]:
    return [service.entry(row, uses.get((row.provider, row.model_id), UNUSED), variant) for row in rows]


def _csv_rows(rows: Sequence[RegisteredModelRow], uses: dict[ModelName, Use], sheet: Sheet) -> str:
    lines = []
    for row in rows:
        entry = service.entry(row, uses.get((row.provider, row.model_id), UNUSED), Variant.B)
        values = {**entry.model_dump(mode="json"), "tags": sheet.tags(row.tags)}
        lines.append([_escape_formula(values[column]) for column in sheet.columns])
    return _csv(lines)


def _escape_formula(value: object) -> object:
    """Quote a text that a spreadsheet would evaluate as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_PREFIXES) else value


def _csv(rows: Sequence[Sequence[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
