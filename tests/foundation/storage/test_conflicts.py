"""Violations of unique constraints as errors of a family."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from tests.support.platform import RunningPlatform

from gatehouse.foundation.errors import Conflict
from gatehouse.foundation.storage.conflicts import unique


class NameTaken(Conflict):
    message = "The name is taken."


class SlugTaken(Conflict):
    message = "The slug is taken."


@pytest.fixture
async def session(platform: RunningPlatform) -> AsyncIterator[AsyncSession]:
    async with platform.host.database.service() as opened:
        yield opened


async def violate(session: AsyncSession, condition: str, constraint: str) -> None:
    """Raise the error that PostgreSQL raises for a violated constraint."""
    await session.execute(
        text(f"DO $$ BEGIN RAISE SQLSTATE '{condition}' USING CONSTRAINT = '{constraint}', MESSAGE = 'x'; END $$")
    )


UNIQUE, FOREIGN_KEY = "23505", "23503"


async def test_a_violated_unique_constraint_is_the_error_of_the_family(session: AsyncSession) -> None:
    with pytest.raises(NameTaken), unique(NameTaken):
        await violate(session, UNIQUE, "rows_name")


@pytest.mark.parametrize(("constraint", "error"), [("rows_name", NameTaken), ("rows_slug", SlugTaken)])
async def test_the_constraint_selects_the_error(session: AsyncSession, constraint: str, error: type[Conflict]) -> None:
    with pytest.raises(error), unique({"rows_name": NameTaken, "rows_slug": SlugTaken}):
        await violate(session, UNIQUE, constraint)


async def test_an_unknown_constraint_is_not_hidden(session: AsyncSession) -> None:
    with pytest.raises(IntegrityError), unique({"rows_name": NameTaken}):
        await violate(session, UNIQUE, "rows_pkey")


async def test_another_violation_is_not_hidden(session: AsyncSession) -> None:
    with pytest.raises(IntegrityError), unique(NameTaken):
        await violate(session, FOREIGN_KEY, "rows_name")
