"""The whole registry as a file. Twenty thousand entries are read in parts and written in a thread, so that nobody waits
for it."""

import asyncio
import csv
import io
from collections.abc import Sequence
from typing import Final, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.variants import Variant
from gatehouse.platform.governance.model_registry import figures, service, table, variants
from gatehouse.platform.governance.model_registry.figures import UNUSED, Name, Use
from gatehouse.platform.governance.model_registry.schemas import RegisteredModel
from gatehouse.platform.governance.model_registry.table import Filters, RegisteredModelRow
from gatehouse.platform.governance.model_registry.variants import Sheet

#: What a spreadsheet takes for the beginning of a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_ENTRIES: Final = TypeAdapter(list[RegisteredModel])


class File(NamedTuple):
    content: bytes
    media_type: str
    #: for the browser to save it by; None where it is shown
    filename: str | None


async def export(session: AsyncSession, filters: Filters, variant: Variant, format: str) -> File:
    """Newest first, as the list."""
    uses = await figures.uses(session)
    if format == "json":
        entries = [
            each
            async for part in table.all_models(session, filters)
            for each in await asyncio.to_thread(_entries, part, uses, variant)
        ]
        return File(await asyncio.to_thread(_ENTRIES.dump_json, entries), "application/json", None)
    sheet = variants.sheet(variant, utc_now().date())
    parts = [await asyncio.to_thread(_cells, part, uses, sheet) async for part in table.all_models(session, filters)]
    return File("".join([_lines([sheet.columns]), *parts]).encode(), "text/csv; charset=utf-8", sheet.filename)


def _entries(rows: Sequence[RegisteredModelRow], uses: dict[Name, Use], variant: Variant) -> list[RegisteredModel]:
    return [service.entry(row, uses.get((row.provider, row.model_id), UNUSED), variant) for row in rows]


def _cells(rows: Sequence[RegisteredModelRow], uses: dict[Name, Use], sheet: Sheet) -> str:
    lines = []
    for row in rows:
        entry = service.entry(row, uses.get((row.provider, row.model_id), UNUSED), Variant.B)
        told = {**entry.model_dump(mode="json"), "tags": sheet.tags(row.tags)}
        lines.append([_harmless(told[column]) for column in sheet.columns])
    return _lines(lines)


def _harmless(value: object) -> object:
    """Whoever names a model must not have a reviewer's spreadsheet calculate."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _lines(rows: Sequence[Sequence[object]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()
