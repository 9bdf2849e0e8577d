"""Advisory locks: each purpose has a key of its own."""

import re
from pathlib import Path

from sqlalchemy import text
from tests.support.platform import RunningPlatform

import gatehouse
from gatehouse.foundation.storage import locks
from gatehouse.foundation.storage.locks import GlobalLock, ScopedLock

SOURCE = Path(gatehouse.__file__).parent
#: calls of lock functions in SQL, with one bigint or with two integers
_IN_SQL = re.compile(r"pg_(?:try_)?advisory_\w*lock\w*\s*\(\s*(\d+|hashtext\('gatehouse\.\w+'\))")


async def test_no_two_purposes_share_a_key(platform: RunningPlatform) -> None:
    async with platform.host.database.service() as session:
        global_keys = [(await session.scalar(text(f"SELECT ({lock.value})::bigint"))) for lock in GlobalLock]
        scoped = [(await session.scalar(text(f"SELECT hashtext('gatehouse.{lock.value}')"))) for lock in ScopedLock]
    assert len(set(global_keys)) == len(GlobalLock.__members__)
    assert len(set(scoped)) == len(ScopedLock.__members__)


def test_python_takes_advisory_locks_in_one_module_only() -> None:
    users = {path for path in SOURCE.rglob("*.py") if re.search(r"pg_\w*advisory", path.read_text())}
    assert users == {Path(locks.__file__)}


def test_every_key_of_the_migrations_is_registered() -> None:
    registered_keys = {lock.value for lock in GlobalLock} | {
        f"hashtext('gatehouse.{lock.value}')" for lock in ScopedLock
    }
    used = {key for path in SOURCE.rglob("*.sql") for key in _IN_SQL.findall(path.read_text())}
    assert used
    assert used <= registered_keys
