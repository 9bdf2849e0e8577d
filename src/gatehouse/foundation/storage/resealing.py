"""Reseals sealed columns under another master key."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer, UnknownSealingKey


class SealedColumn(msgspec.Struct, frozen=True):
    """A column with sealed texts. `context` returns a text's authenticated context from the row's key values."""

    table: str
    key: tuple[str, ...]
    column: str
    context: Callable[..., bytes]


class CannotReseal(Exception):
    """Nothing was changed. The message has the reason and what to do."""


class ResealReport(msgspec.Struct):
    #: number of resealed texts by `table.column`
    resealed: dict[str, int]
    current_already: int


async def reseal(session: AsyncSession, sealer: Sealer, columns: Iterable[SealedColumn]) -> ResealReport:
    """Reseals all columns under the current key, in this transaction. Raises `CannotReseal`.

    The session must be the owner's: no other role may change all of these columns.
    """
    done: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    broken: list[str] = []
    current_already = 0
    for sealed in columns:
        for row in await _rows(session, sealed):
            sealed_text, *key = row
            if sealer.is_current(sealed_text):
                current_already += 1
                continue
            try:
                resealed_text = sealer.reseal(sealed_text, context=sealed.context(*key))
            except UnknownSealingKey:
                missing[sealed_text.split(".")[1]] += 1
            except CannotOpen:
                broken.append(f"{sealed.table} {' '.join(map(str, key))}")
            else:
                await _write(session, sealed, key, resealed_text)
                done[f"{sealed.table}.{sealed.column}"] += 1
    _refuse(missing, broken)
    return ResealReport(dict(done), current_already)


def _refuse(missing: Counter[str], broken: list[str]) -> None:
    if missing:
        keys = ", ".join(f"{key_id} ({count} secrets)" for key_id, count in sorted(missing.items()))
        raise CannotReseal(f"GATEHOUSE_MASTER_KEY lacks these keys: {keys}. Add them after the current one.")
    if broken:
        rows = ", ".join(broken[:10]) + (", ..." if len(broken) > 10 else "")
        raise CannotReseal(f"{len(broken)} sealed texts do not open under their key: {rows}. Set these secrets again.")


async def _rows(session: AsyncSession, sealed: SealedColumn) -> list[tuple[Any, ...]]:
    """Return the rows of a column. They are locked, so that concurrent updates of these secrets run afterwards."""
    columns = ", ".join((sealed.column, *sealed.key))
    query = f"SELECT {columns} FROM {sealed.table} WHERE {sealed.column} IS NOT NULL FOR UPDATE"  # noqa: S608
    return [tuple(row) for row in (await session.execute(text(query))).all()]


async def _write(session: AsyncSession, sealed: SealedColumn, key: list[Any], resealed_text: str) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in sealed.key)
    statement = f"UPDATE {sealed.table} SET {sealed.column} = :again WHERE {where}"  # noqa: S608
    await session.execute(text(statement), {"again": resealed_text, **dict(zip(sealed.key, key, strict=True))})
