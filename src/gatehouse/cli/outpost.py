"""`outpost bundle`, `hand-in`."""

import asyncio
from pathlib import Path
from typing import IO

import click

from gatehouse.cli.main import CommandError


@click.group()
def outpost() -> None:
    """Carry files between the platform and an outpost in an air gap: the policy there, the records back."""


@outpost.command(epilog="Example: gatehouse outpost bundle --out bundle.jws --keys keys.json")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Takes the signed bundle.")
@click.option(
    "--keys", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Takes the platform's keys."
)
def bundle(out: Path, keys: Path) -> None:
    """Fetch the newest policy for an outpost in an air gap, on a machine that reaches the platform.

    Reads OUTPOST_ID, PLATFORM_MANAGEMENT_URL, TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_BUNDLE, as the outpost would.
    Carry both files to OUTPOST_BUNDLE_PATH and OUTPOST_KEYS_PATH: it takes them within a second.
    """
    from gatehouse.foundation.clock import iso
    from gatehouse.outpost.airgap import fetch
    from gatehouse.outpost.platform import PlatformRefusal, PlatformUnavailable
    from gatehouse.outpost.settings import OutpostSettings
    from gatehouse.policy.signing import BundleRefused

    if out.absolute() == keys.absolute():
        raise CommandError("--out and --keys must be two files")
    try:
        held = asyncio.run(fetch(OutpostSettings.from_environment(), out, keys))
    except PlatformUnavailable as error:
        raise CommandError(f"the platform cannot be reached: {error}") from None
    except PlatformRefusal as error:
        raise CommandError(f"the platform refuses this outpost: {error}") from None
    except BundleRefused as error:
        raise CommandError(f"what the platform has sent is no good bundle: {error}") from None
    except OSError as error:
        raise CommandError(f"cannot write: {error}") from None
    click.echo(f"Version {held.version} for outpost {held.outpost_id}, to be renewed before {iso(held.expires_at)}.")


@outpost.command("hand-in", epilog="Example: gatehouse outpost hand-in audit.jsonl")
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
def hand_in(files: tuple[IO[bytes], ...]) -> None:
    """Hand an outpost's exported audit log in to the platform, in the order of the files; `-` is standard input.

    Reads OUTPOST_ID, PLATFORM_MANAGEMENT_URL, TLS_CERT_PATH, TLS_KEY_PATH and TLS_CA_BUNDLE, as the outpost would. It
    can be done again: the platform passes over what it has.
    """
    from gatehouse.outpost.audit_log import NotALine
    from gatehouse.outpost.carried import Missing, hand_in
    from gatehouse.outpost.platform import PlatformRefusal, PlatformUnavailable
    from gatehouse.outpost.settings import OutpostSettings

    settings = OutpostSettings.from_environment()
    for file in files:
        try:
            brought = asyncio.run(hand_in(settings, file))
        except PlatformUnavailable as error:
            raise CommandError(f"{file.name}: the platform cannot be reached ({error}); do it again") from None
        except PlatformRefusal as error:
            raise CommandError(f"{file.name}: the platform refuses it: {error}") from None
        except (NotALine, Missing) as error:
            raise CommandError(f"{file.name}: {error}") from None
        click.echo(f"{file.name}: {brought.lines} lines, {brought.stored} of them new to the platform")
        for at, reason in brought.rejected:
            click.echo(f"  {at.journal_id}:{at.sequence} was rejected: {reason}")
