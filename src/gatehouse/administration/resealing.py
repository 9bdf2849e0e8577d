"""Seals the secrets of a deployable again with another master key (`gatehouse keys rotate-master`)."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer, UnknownSealingKey


class SealedColumn(msgspec.Struct, frozen=True):
    """A column with sealed texts. `context` takes the key values of a row and returns the authenticated context of its
    sealed text."""

    table: str
    key: tuple[str, ...]
    column: str
    context: Callable[..., bytes]


class CannotReseal(Exception):
    """Secrets cannot be sealed again, and nothing was changed. The message contains the reason and what to do."""


class ResealReport(msgspec.Struct):
    #: number of resealed texts by `table.column`
    resealed: dict[str, int]
    current_already: int


class RecordedChange(Protocol):
    """The deployable's object for a change by the system. `session` must have the role of the database's owner, because
    no other role may change all of these columns."""

    session: AsyncSession

    def record(self, action: str, resource_type: str | None, resource_id: object, **details: Any) -> None: ...

    async def commit(self) -> None: ...


async def reseal(sealer: Sealer, columns: Iterable[SealedColumn], change: RecordedChange) -> ResealReport:
    """Seal all columns again with the current key, record an audit event, and commit. Raises `CannotReseal`."""
    done: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    broken: list[str] = []
    current_already = 0
    for sealed in columns:
        for row in await _rows(change.session, sealed):
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
                await _write(change.session, sealed, key, resealed_text)
                done[f"{sealed.table}.{sealed.column}"] += 1
    _refuse(missing, broken)
    if done:
        change.record("master_key.rotated", "master_key", sealer.current, resealed=dict(done))
        await change.commit()
    return ResealReport(dict(done), current_already)


def _refuse(missing: Counter[str], broken: list[str]) -> None:
    if missing:
        keys = ", ".join(f"{key_id} ({count} secrets)" for key_id, count in sorted(missing.items()))
        raise CannotReseal(f"GATEHOUSE_MASTER_KEY lacks these keys: {keys}. Add them after the current one.")
    if broken:
        rows = ", ".join(broken[:10]) + (", ..." if len(broken) > 10 else "")
        raise CannotReseal(f"{len(broken)} sealed texts do not open under their key: {rows}. Set these secrets again.")


async def _rows(session: AsyncSession, sealed: SealedColumn) -> list[tuple[Any, ...]]:
    """Return the rows with sealed texts in a column. The rows are locked, so that concurrent updates of these secrets
    wait."""
    columns = ", ".join((sealed.column, *sealed.key))
    query = f"SELECT {columns} FROM {sealed.table} WHERE {sealed.column} IS NOT NULL FOR UPDATE"  # noqa: S608
    return [tuple(row) for row in (await session.execute(text(query))).all()]


async def _write(session: AsyncSession, sealed: SealedColumn, key: list[Any], resealed_text: str) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in sealed.key)
    statement = f"UPDATE {sealed.table} SET {sealed.column} = :again WHERE {where}"  # noqa: S608
    await session.execute(text(statement), {"again": resealed_text, **dict(zip(sealed.key, key, strict=True))})
