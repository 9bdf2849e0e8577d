"""Implements `keys rotate`, `keys rotate-saml`, `keys rotate-ca`, `keys rotate-master`."""

import asyncio
from typing import TYPE_CHECKING

import click

from gatehouse.cli.main import CommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncSession

    from gatehouse.administration.resealing import ResealReport
    from gatehouse.foundation.secrets.sealing import Sealer
    from gatehouse.platform.access.tokens.rotation import RotationResult
    from gatehouse.platform.installation.setup import Installation
    from gatehouse.portal.installation import PortalInstallation


@click.group()
def keys() -> None:
    """Rotate the keys that sign tokens, SAML requests and certificates, and the key that seals secrets."""


_APPLICATION = click.argument("application", type=click.Choice(["platform", "portal"]), default="platform")


@keys.command(epilog="Example: gatehouse keys rotate; gatehouse keys rotate portal")
@_APPLICATION
@click.option("--stolen", is_flag=True, help="Refuse all tokens signed until now: all sessions and tokens end at once.")
def rotate(application: str, stolen: bool) -> None:
    """Sign tokens with a new key from now on.

    The old key stays published until its last token has expired, so no user is signed out. All running workers load the
    new key before it signs a token.
    """
    from gatehouse.platform.access.tokens.rotation import WorkersNotReady

    if application == "portal":
        _rotate_portal(stolen)
        return
    installed, sealer = _installation()
    try:
        rotated = asyncio.run(_rotate(installed, sealer, stolen))
    except WorkersNotReady as error:
        raise CommandError(
            f"these workers have not loaded the new key, so the old one still signs: {error}."
            " Stop them or wait until they are back, then try again"
        ) from None
    click.echo(f"Key {rotated.new_kid} signs from now on ({rotated.workers} running workers know it).")
    _print_old_keys(rotated.old_kids, stolen)


@keys.command("rotate-saml", epilog="Example: gatehouse keys rotate-saml; gatehouse keys rotate-saml --activate")
@click.option("--activate", is_flag=True, help="Sign with the prepared key from now on.")
def rotate_saml(activate: bool) -> None:
    """Sign SAML requests with a new key, in two steps.

    \b
    1. Run this command: the metadata then contains the next certificate, which signs nothing yet.
    2. Have every identity provider read the metadata again (GET /api/saml/metadata).
    3. Run this command with --activate: the new key signs. The next rotation removes the old certificate from the
    metadata.
    """
    from gatehouse.platform.access.saml.protocol.keys import NoNextKey

    installed, sealer = _installation()
    try:
        click.echo(asyncio.run(_rotate_saml(installed, sealer, activate)))
    except NoNextKey:
        raise CommandError("no key is prepared: run this without --activate first") from None


@keys.command("rotate-master", epilog="Example: GATEHOUSE_MASTER_KEY=k2:NEW,k1:OLD gatehouse keys rotate-master")
@_APPLICATION
def rotate_master(application: str) -> None:
    """Seal every secret in the database again, under the first key of GATEHOUSE_MASTER_KEY (or of the file master.key).

    \b
    1. Put the new key first and the old key after it, and restart every process with this setting.
    2. Run this command. It can be run again at any time, and reports when nothing is left to do.
    3. Remove the old key from the setting and restart. Keep the old key as long as you keep older backups.
    """
    from gatehouse.administration.resealing import CannotReseal

    try:
        sealer, result = _reseal_portal() if application == "portal" else _reseal_platform()
    except CannotReseal as error:
        raise CommandError(str(error)) from None
    for column, count in result.resealed.items():
        click.echo(f"{column}: {count} sealed again")
    if result.resealed:
        click.echo(f"All secrets are now sealed under the key {sealer.current}.")
    else:
        click.echo(f"Nothing to do: all {result.current_already} secrets are sealed under the key {sealer.current}.")


@keys.command("rotate-ca", epilog="Example: gatehouse keys rotate-ca; gatehouse keys rotate-ca --stolen")
@click.option("--stolen", is_flag=True, help="Distrust every certificate issued until now: no outpost is accepted.")
def rotate_ca(stolen: bool) -> None:
    """Issue outposts' certificates by a new authority of the portal from now on.

    The previous one is trusted until the last certificate that it issued has expired, so no outpost is cut off. With
    --stolen, it is not trusted from now on: renew the certificate of each outpost (POST
    .../outposts/{outpost_id}/renew) and install it.
    """
    import psycopg

    from gatehouse.portal.keys import authorities

    installed = _portal()
    try:
        with psycopg.connect(installed.owner_url) as connection:
            authority_id = authorities.rotate(connection, installed.sealer, stolen=stolen)
    except authorities.TooManyAuthorities as error:
        raise CommandError(str(error)) from None
    click.echo(f"Authority {authority_id} issues from now on; the platform trusts it after the portal's next push.")
    if stolen:
        click.echo("No certificate issued until now is trusted: renew each outpost's certificate.")


def _print_old_keys(kids: list[str], stolen: bool) -> None:
    for kid in kids:
        click.echo(f"Key {kid} {'is refused' if stolen else 'stays published until its last token has expired'}.")


def _rotate_portal(stolen: bool) -> None:
    import psycopg

    from gatehouse.portal.keys import signing

    installed = _portal()
    with psycopg.connect(installed.owner_url) as connection:
        new_kid, old_kids = signing.rotate(connection, installed.sealer, stolen=stolen)
    click.echo(f"Key {new_kid} signs from now on; every portal process knows it within a second.")
    _print_old_keys(old_kids, stolen)


def _portal() -> "PortalInstallation":
    from gatehouse.portal import installation

    installed = installation.connect()
    installation.check(installed)
    return installed


def _installation() -> "tuple[Installation, Sealer]":
    from gatehouse.foundation.secrets.sealing import Sealer
    from gatehouse.platform.installation import setup

    installed = setup.connect()
    setup.check(installed)
    return installed, Sealer(installed.master_keys.keys, installed.master_keys.current)


async def _rotate(installed: "Installation", sealer: "Sealer", stolen: bool) -> "RotationResult":
    from gatehouse.foundation.storage.database import Database
    from gatehouse.platform.access.tokens.rotation import rotate

    database = Database(installed.url, pool_size=1)
    try:
        return await rotate(database, sealer, stolen=stolen)
    finally:
        await database.close()


async def _rotate_saml(installed: "Installation", sealer: "Sealer", activate: bool) -> str:
    from gatehouse.foundation.storage.database import Database
    from gatehouse.platform.access.saml.protocol import keys as saml_keys

    database = Database(installed.url, pool_size=1)
    try:
        if activate:
            current, former = await saml_keys.activate(database)
            return f"Key {current} signs SAML requests from now on. Key {former} no longer signs."
        key_id = await saml_keys.prepare(database, sealer)
        return f"Key {key_id} is in the metadata. Have your identity providers read it, then run this with --activate."
    finally:
        await database.close()


def _reseal_platform() -> "tuple[Sealer, ResealReport]":
    from gatehouse.platform.installation.resealing import reseal

    installed, sealer = _installation()
    return sealer, asyncio.run(_reseal(installed.owner_url, sealer, reseal))


def _reseal_portal() -> "tuple[Sealer, ResealReport]":
    from gatehouse.portal.keys.resealing import reseal

    installed = _portal()
    return installed.sealer, asyncio.run(_reseal(installed.owner_url, installed.sealer, reseal))


async def _reseal(
    owner_url: str, sealer: "Sealer", reseal: "Callable[[AsyncSession, Sealer], Awaitable[ResealReport]]"
) -> "ResealReport":
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    from gatehouse.foundation.storage.database import sqlalchemy_url

    engine = create_async_engine(sqlalchemy_url(owner_url))
    try:
        async with AsyncSession(engine) as session:
            return await reseal(session, sealer)
    finally:
        await engine.dispose()
