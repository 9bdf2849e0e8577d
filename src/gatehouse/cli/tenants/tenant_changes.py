"""Changes of organizations from the command line. They are recorded in the audit chain as changes by the system, and
running workers receive them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from gatehouse.cli.main import CommandError

if TYPE_CHECKING:
    from gatehouse.foundation.identity import TenantId
    from gatehouse.foundation.storage.database import Database
    from gatehouse.platform.changes.change import Change

_Result = TypeVar("_Result")


def run_change(tenant: str, work: "Callable[[Change], Awaitable[_Result]]") -> _Result:
    """Run `work` as one change of the organization with this slug, and wait until the running workers have received the
    change."""
    return run_changes(tenant, work)[tenant]


def run_changes(
    tenant: str | None, work: "Callable[[Change], Awaitable[_Result]]", *, dry_run: bool = False
) -> dict[str, _Result]:
    """Run `work` as a change of the organization with this slug, or as one change of each organization, and wait until
    the running workers have received the changes. Return the results by slug. With `dry_run`, nothing is stored."""
    from gatehouse.foundation.errors import Refusal
    from gatehouse.foundation.storage.database import Database
    from gatehouse.platform.changes.change import Change
    from gatehouse.platform.installation import setup
    from gatehouse.platform.live.nodes import wait_until_confirmed

    async def run(url: str) -> dict[str, _Result]:
        results = {}
        urgent_revision = None
        database = Database(url, pool_size=2)
        try:
            for slug, tenant_id in (await _tenants(database, tenant)).items():
                async with database.tenant(tenant_id) as session:
                    change = Change(session, None, tenant_id=tenant_id)
                    results[slug] = await work(change)
                    if not dry_run:
                        await change.commit()
                if change.urgent and change.revision is not None:
                    urgent_revision = change.revision
            if urgent_revision is not None:
                pending = (await wait_until_confirmed(database, urgent_revision)).pending
                if pending:
                    click.echo(f"Not yet confirmed by: {', '.join(pending)}", err=True)
            return results
        finally:
            await database.close()

    installed = setup.connect()
    setup.check(installed)
    try:
        return asyncio.run(run(installed.url))
    except Refusal as error:
        raise CommandError(error.text) from None


async def _tenants(database: "Database", slug: str | None) -> "dict[str, TenantId]":
    from gatehouse.foundation.identity import TenantId
    from gatehouse.platform.access.users.table import tenant_by_slug
    from gatehouse.platform.organization.tenants.table import ids_by_slug

    async with database.service() as session:
        if slug is None:
            return await ids_by_slug(session)
        tenant_id = await tenant_by_slug(session, slug)
    if tenant_id is None:
        raise CommandError(f"there is no organization {slug}")
    return {slug: TenantId(tenant_id)}
