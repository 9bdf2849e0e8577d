"""`gatehouse users`: repairs access to administration, on a machine that reaches the database."""

import asyncio
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.cli.main import cli


class Shell:
    def __init__(self, platform: RunningPlatform) -> None:
        self._environment = {"GATEHOUSE_HOME": str(platform.installed.home)}

    async def run(self, *words: str, typed: str | None = None) -> Result:
        """Run the command in another thread, because it has its own event loop."""
        runner = CliRunner(env=self._environment)
        return await asyncio.to_thread(runner.invoke, cli, ["users", *words], input=typed)


@pytest.fixture
def shell(platform: RunningPlatform) -> Shell:
    return Shell(platform)


def address() -> str:
    return f"ada-{uuid4().hex[:10]}@example.test"


async def test_create_prints_an_invitation_that_opens_the_account(
    platform: RunningPlatform, tenant: Tenant, shell: Shell
) -> None:
    email = address()
    done = await shell.run("create", email, "--role", "admin", "--tenant", tenant.slug)
    assert done.exit_code == 0, done.output
    token = next(word for word in done.output.split() if word.startswith("inv_"))
    body = {"email": email, "password": PASSWORD, "invitation_token": token}
    registered = await platform.anonymous.post("/api/auth/register", json=body)
    assert (registered.status_code, registered.json()["role"]) == (201, "admin")
    (event,) = await platform.audit(tenant, "user.created")
    assert event["actor_type"] == "system"
    listed = await shell.run("list", "--tenant", tenant.slug, "--role", "admin")
    assert email in listed.output
    assert tenant.user.email not in listed.output


async def test_a_user_that_the_command_creates_can_sign_in_at_a_running_worker(
    platform: RunningPlatform, tenant: Tenant, shell: Shell
) -> None:
    email = address()
    typed = f"{PASSWORD}\n"
    done = await shell.run("create", email, "--tenant", tenant.slug, "--password-stdin", typed=typed)
    assert done.exit_code == 0, done.output
    signed_in = await platform.anonymous.post("/api/auth/login", json={"email": email, "password": PASSWORD})
    client = platform.client(signed_in.json()["access_token"])
    assert (await client.get("/v1/models")).status_code == 200


async def test_reset_gives_a_token_or_sets_the_password_and_ends_sessions(
    platform: RunningPlatform, tenant: Tenant, shell: Shell
) -> None:
    email = tenant.user.email
    done = await shell.run("reset", email, "--tenant", tenant.slug)
    token = next(word for word in done.output.split() if word.startswith("pwr_"))
    body = {"token": token, "password": PASSWORD}
    assert (await platform.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    login = {"email": email, "password": PASSWORD}
    signed_in = (await platform.anonymous.post("/api/auth/login", json=login)).json()
    typed = "another password\n"
    done = await shell.run("reset", email, "--tenant", tenant.slug, "--password-stdin", typed=typed)
    assert done.exit_code == 0, done.output
    assert (await platform.client(signed_in["access_token"]).get("/v1/models")).status_code == 401
    assert (await platform.anonymous.post("/api/auth/login", json=login)).status_code == 401


async def test_the_operator_mark_is_set_and_removed(platform: RunningPlatform, shell: Shell) -> None:
    operator = await platform.operator()
    default = platform.sql("SELECT tenant_id FROM users WHERE id = %s", [operator.id])[0][0]
    admin = await platform.new_person(default, "admin")

    async def marked() -> bool:
        return bool((await admin.client.get(f"/api/admin/users/{admin.id}")).json()["operator"])

    assert (await shell.run("operator", admin.email)).exit_code == 0
    assert await marked()
    assert (await shell.run("operator", admin.email, "--revoke")).exit_code == 0
    assert not await marked()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reset", "nobody@example.test"], "default has no user nobody@example.test"),
        (["list", "--tenant", "no-such"], "there is no organization no-such"),
        (["create", "nobody"], "email: "),
        (["create", "x@example.test", "--password-stdin"], "A password has 8"),
    ],
)
async def test_an_error_is_one_line_with_a_remedy(shell: Shell, words: list[str], message: str) -> None:
    done = await shell.run(*words, typed="short\n")
    assert done.exit_code == 1
    assert message in done.output
    assert len(done.output.splitlines()) == 1


@pytest.mark.parametrize("command", ["list", "create", "reset", "operator"])
async def test_help_shows_an_example(shell: Shell, command: str) -> None:
    assert f"Example: gatehouse users {command}" in (await shell.run(command, "--help")).output
