"""Sealed columns, and how what they hold gets under another master key."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.sealing import CannotOpen, Sealer, UnknownSealingKey


class SealedColumn(msgspec.Struct, frozen=True):
    """`context` makes of a row's key values what the sealed text is bound to."""

    table: str
    key: tuple[str, ...]
    column: str
    context: Callable[..., bytes]


class CannotReseal(Exception):
    """Why nothing was changed, in a sentence that says what to do."""


class Resealed(msgspec.Struct):
    #: texts by column, as `table.column`
    resealed: dict[str, int]
    current_already: int


async def reseal(session: AsyncSession, sealer: Sealer, columns: Iterable[SealedColumn]) -> Resealed:
    """Seals everything under the current key, in this transaction. Raises `CannotReseal`.

    The session is the owner's: no other role may change all of these columns.
    """
    done: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    broken: list[str] = []
    current_already = 0
    for sealed in columns:
        for row in await _rows(session, sealed):
            text_now, *key = row
            if sealer.is_current(text_now):
                current_already += 1
                continue
            try:
                again = sealer.reseal(text_now, context=sealed.context(*key))
            except UnknownSealingKey:
                missing[text_now.split(".")[1]] += 1
            except CannotOpen:
                broken.append(f"{sealed.table} {' '.join(map(str, key))}")
            else:
                await _write(session, sealed, key, again)
                done[f"{sealed.table}.{sealed.column}"] += 1
    _refuse(missing, broken)
    return Resealed(dict(done), current_already)


def _refuse(missing: Counter[str], broken: list[str]) -> None:
    if missing:
        lacking = ", ".join(f"{key_id} ({count} secrets)" for key_id, count in sorted(missing.items()))
        raise CannotReseal(f"GATEHOUSE_MASTER_KEY lacks these keys: {lacking}. Add them behind the current one.")
    if broken:
        named = ", ".join(broken[:10]) + (", ..." if len(broken) > 10 else "")
        raise CannotReseal(f"{len(broken)} sealed texts do not open under their key: {named}. Set these secrets again.")


async def _rows(session: AsyncSession, sealed: SealedColumn) -> list[tuple[Any, ...]]:
    """Locked: whoever sets one of these secrets meanwhile does so after us."""
    columns = ", ".join((sealed.column, *sealed.key))
    query = f"SELECT {columns} FROM {sealed.table} WHERE {sealed.column} IS NOT NULL FOR UPDATE"  # noqa: S608
    return [tuple(row) for row in (await session.execute(text(query))).all()]


async def _write(session: AsyncSession, sealed: SealedColumn, key: list[Any], again: str) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in sealed.key)
    statement = f"UPDATE {sealed.table} SET {sealed.column} = :again WHERE {where}"  # noqa: S608
    await session.execute(text(statement), {"again": again, **dict(zip(sealed.key, key, strict=True))})
