"""Implements `outpost bundle`, `hand-in`."""

import asyncio
from pathlib import Path
from typing import IO

import click

from gatehouse.cli.main import CommandError


@click.group()
def outpost() -> None:
    """Exchange files between the platform and an outpost in an air gap: policies in one direction, records in the
    other."""


@outpost.command(epilog="Example: gatehouse outpost bundle --out bundle.jws --keys keys.json")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File for the signed bundle."
)
@click.option(
    "--keys", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File for the platform's keys."
)
def bundle(out: Path, keys: Path) -> None:
    """Fetch the newest policy for an outpost in an air gap, on a machine that can reach the platform.

    Reads OUTPOST_ID, PLATFORM_MANAGEMENT_URL, TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_BUNDLE, like the outpost.
    Copy the two files to OUTPOST_BUNDLE_PATH and OUTPOST_KEYS_PATH. The outpost loads them within a second.
    """
    from gatehouse.foundation.clock import iso
    from gatehouse.outpost.platform_link.client import PlatformRefusal, PlatformUnavailable
    from gatehouse.outpost.policy.airgap import fetch
    from gatehouse.outpost.settings import OutpostSettings
    from gatehouse.policy.bundles.signing import BundleRefused

    if out.absolute() == keys.absolute():
        raise CommandError("--out and --keys must be two files")
    try:
        fetched = asyncio.run(fetch(OutpostSettings.from_environment(), out, keys))
    except PlatformUnavailable as error:
        raise CommandError(f"the platform cannot be reached: {error}") from None
    except PlatformRefusal as error:
        raise CommandError(f"the platform refuses this outpost: {error}") from None
    except BundleRefused as error:
        raise CommandError(f"the platform's bundle is refused: {error}") from None
    except OSError as error:
        raise CommandError(f"cannot write: {error}") from None
    click.echo(
        f"Version {fetched.version} for outpost {fetched.outpost_id}, to be renewed before {iso(fetched.expires_at)}."
    )


@outpost.command("hand-in", epilog="Example: gatehouse outpost hand-in audit.jsonl")
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
def hand_in(files: tuple[IO[bytes], ...]) -> None:
    """Upload the exported audit log of an outpost to the platform, in the order of the files; `-` is standard input.

    Reads OUTPOST_ID, PLATFORM_MANAGEMENT_URL, TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_BUNDLE, like the outpost. The
    command can be repeated, because the platform skips records that it already has.
    """
    from gatehouse.outpost.platform_link.client import PlatformRefusal, PlatformUnavailable
    from gatehouse.outpost.records.carried_log import Missing, hand_in
    from gatehouse.outpost.records.log import NotALine
    from gatehouse.outpost.settings import OutpostSettings

    settings = OutpostSettings.from_environment()
    for file in files:
        try:
            result = asyncio.run(hand_in(settings, file))
        except PlatformUnavailable as error:
            raise CommandError(f"{file.name}: the platform cannot be reached ({error}); try again later") from None
        except PlatformRefusal as error:
            raise CommandError(f"{file.name}: the platform refuses the file: {error}") from None
        except (NotALine, Missing) as error:
            raise CommandError(f"{file.name}: {error}") from None
        click.echo(f"{file.name}: {result.lines} lines, {result.stored} of them new to the platform")
        for cursor, reason in result.rejected:
            click.echo(f"  {cursor.journal_id}:{cursor.sequence} was rejected: {reason}")
