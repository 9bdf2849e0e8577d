"""Implements `users`. With access to the database, these commands can restore the access of administrators. Every
change is recorded in the audit chain as a change by the system, and running workers receive it."""

import sys
from typing import TYPE_CHECKING, Final

import click

from gatehouse.cli.main import CommandError
from gatehouse.cli.tenants.tenant_changes import run_change

if TYPE_CHECKING:
    from gatehouse.platform.access.users.table import UserRow
    from gatehouse.platform.changes.change import Change

_tenant: Final = click.option("--tenant", default="default", show_default=True, help="The organization's slug.")


@click.group(epilog="Example: gatehouse users list --role admin")
def users() -> None:
    """List and create users, reset passwords, and make users operators."""


@users.command("list", epilog="Example: gatehouse users list --tenant acme --search ada")
@_tenant
@click.option("--search", help="Part of an address, user name or name.")
@click.option("--role", type=click.Choice(["admin", "auditor", "user"]))
def list_users(tenant: str, search: str | None, role: str | None) -> None:
    """List the users of an organization, newest first."""
    from gatehouse.platform.access.users.table import matching

    async def work(change: "Change") -> list["UserRow"]:
        query = await matching(change.session, search=search, role=role, active=None)
        return list(await change.session.scalars(query))

    for user in run_change(tenant, work):
        attributes = [user.role, *(["operator"] if user.operator else []), *([] if user.is_active else ["inactive"])]
        click.echo(f"{user.id}  {user.email}  {' '.join(attributes)}")


@users.command(epilog="Example: gatehouse users create ada@example.com --role admin --tenant acme")
@click.argument("email")
@_tenant
@click.option("--role", type=click.Choice(["admin", "auditor", "user"]), default="user", show_default=True)
@click.option("--username")
@click.option("--display-name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
def create(email: str, tenant: str, *, password_stdin: bool, **options: str | None) -> None:
    """Create a user. Without a password, prints the token of an invitation."""
    from pydantic import ValidationError

    from gatehouse.platform.access.users import service
    from gatehouse.platform.access.users.schemas import NewUser

    fields = {"email": email, **{name: value for name, value in options.items() if value is not None}}
    try:
        new = NewUser.model_validate(fields)
    except ValidationError as error:
        fault = error.errors()[0]
        raise CommandError(f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}") from None
    hashed = _hashed_from_stdin(new.email) if password_stdin else None

    async def work(change: "Change") -> str | None:
        _, invitation = await service.create(change, None, new, hashed)
        return None if invitation is None else invitation.token

    token = run_change(tenant, work)
    click.echo(f"Made {new.email}, {new.role} of {tenant}.")
    if token is not None:
        click.echo(
            f'Invitation (shown once): {token}\nRedeem: POST /api/auth/register {{"email", "password",', nl=False
        )
        click.echo(' "invitation_token"}, within 7 days')


@users.command(epilog="Example: gatehouse users reset ada@example.com")
@click.argument("email")
@_tenant
@click.option("--password-stdin", is_flag=True, help="Set the password from standard input at once.")
def reset(email: str, tenant: str, password_stdin: bool) -> None:
    """Print a one-time token for setting a new password, or set the password."""
    from gatehouse.platform.access.revoking import end_sessions
    from gatehouse.platform.access.users import service
    from gatehouse.platform.access.users.table import by_email

    hashed = _hashed_from_stdin(email) if password_stdin else None

    async def work(change: "Change") -> str | None:
        user = _require_user(await by_email(change.session, email), email, tenant)
        if hashed is None:
            return (await service.issue_reset(change, None, user)).token
        await service.set_password(change, user, hashed)
        await end_sessions(change, user.id, "password_reset")
        change.record("user.password_reset", "user", user.id)
        return None

    token = run_change(tenant, work)
    if token is None:
        click.echo(f"{email} has a new password; their sessions are ended.")
    else:
        click.echo(f'Token (shown once): {token}\nUse: POST /api/auth/password/reset {{"token", "password"}}', nl=False)
        click.echo(", within 24 hours")


@users.command(epilog="Example: gatehouse users operator ada@example.com, or with --revoke")
@click.argument("email")
@click.option("--revoke", is_flag=True, help="Remove the operator mark.")
def operator(email: str, revoke: bool) -> None:
    """Give an administrator of the organization `default` the operator mark."""
    from gatehouse.platform.access.users import service
    from gatehouse.platform.access.users.table import by_email

    async def work(change: "Change") -> None:
        user = _require_user(await by_email(change.session, email), email, "default")
        await service.update(change, None, user, {"operator": not revoke})

    run_change("default", work)
    click.echo(f"{email} is {'no longer' if revoke else 'now'} an operator.")


def _hashed_from_stdin(email: str) -> str:
    from gatehouse.foundation.secrets.passwords import PasswordRefused, hash_now

    try:
        return hash_now(sys.stdin.readline().rstrip("\r\n"), about=email)
    except PasswordRefused as error:
        raise CommandError(error.text) from None


def _require_user(user: "UserRow | None", email: str, tenant: str) -> "UserRow":
    if user is None:
        raise CommandError(f"{tenant} has no user {email}; gatehouse users list --tenant {tenant} lists its users")
    return user
