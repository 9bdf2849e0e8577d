"""The statements of the security page on PostgreSQL's roles work. They run on a separate server, because roles belong
to the whole server."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage import embedded, roles
from gatehouse.foundation.storage.roles import APP_ROLE, SERVICE_ROLE
from gatehouse.platform.installation import setup

PAGE = (Path(__file__).parents[2] / "docs/security.md").read_text()
AS_SUPERUSER, AS_OWNER = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="gr", dir="/tmp", ignore_cleanup_errors=True) as home:
        yield embedded.start(Path(home))
        embedded.stop(Path(home))


def _as(server: str, user: str) -> str:
    return urlsplit(server)._replace(netloc=f"{user}@", path="/gatehouse").geturl()


def test_a_login_that_owns_nothing_can_serve(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as superuser:
        for statement in AS_SUPERUSER.split(";"):
            superuser.execute(statement.encode())
    owner, login = _as(server, "gatehouse_owner"), _as(server, "gatehouse_login")
    installed = setup.connect(
        Settings.from_environment({"DATABASE_URL": owner, "GATEHOUSE_MASTER_KEY": "A" * 43 + "="})
    )
    setup.prepare(installed)
    with pytest.raises(roles.WrongRole):
        roles.connect(login, APP_ROLE)
    with psycopg.connect(owner) as connection:
        connection.execute(AS_OWNER.encode())
    for url in (owner, login):
        for role in (APP_ROLE, SERVICE_ROLE):
            with roles.connect(url, role) as connection:
                assert connection.execute("SELECT current_user").fetchone() == (role,)
    with roles.connect(login, APP_ROLE) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (0,)
