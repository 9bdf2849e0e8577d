"""The `gatehouse` command. Its subcommands are imported when they are called. Errors are one line that says what to
do."""

import gc
import importlib
import sys
from typing import Final

import click

#: Maps the name of each command to its module in `gatehouse.cli` and its help text.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "serve": ("serve", "Serve the platform, the portal or an outpost."),
    "worker": ("serve", "Run background jobs, on this machine or another."),
    "migrate": ("database", "Migrate the database's schema to this version."),
    "keys": ("keys", "Rotate the keys that sign tokens, and the key that seals secrets."),
    "users": ("tenants.users", "List and create users, reset a password, make operators."),
    "prices": ("tenants.prices", "List known models with their prices, and update the catalog from them."),
    "audit": ("audit", "Check the audit chain."),
    "archive": ("archive", "Query, list, check and fill the archive of old records."),
    "outpost": ("outpost", "Exchange files between the platform and an outpost in an air gap."),
    "openapi": ("openapi", "Print the OpenAPI document of an application."),
    "sandbox": ("sandbox", "Serve the sandbox provider as a separate upstream."),
    "scan": ("scan", "Look for secrets and personal data in files or standard input."),
    "doctor": ("upkeep", "Check this installation, and report how to fix it."),
    "backup": ("upkeep", "Save the database and the journal in one file."),
    "restore": ("upkeep", "Restore a backup."),
}


class CommandError(click.ClickException):
    """An error that the user can fix. Its message is one line."""

    def show(self, file: object = None) -> None:
        click.echo(f"gatehouse: {self.message}", err=True)


class LazyGroup(click.Group):
    """Imports the module of a command only when the command is called, so that `--help` and completion are fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gatehouse.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gatehouse")
def cli() -> None:
    """Gatehouse: an AI gateway with an administration API."""


def main() -> None:
    # Objects that imports create are never freed. Garbage collection during imports would take a quarter of the start.
    gc.set_threshold(1_000_000)
    try:
        # Without its standalone mode, click returns the exit status instead of raising an exception.
        status = cli.main(standalone_mode=False)
        sys.exit(status if isinstance(status, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except Exception as error:
        message = _operators_message(error)
        if message is None:
            raise
        click.echo(f"gatehouse: {message}", err=True)
        sys.exit(2)


def _operators_message(error: Exception) -> str | None:
    """Return what an operator can do about the error; None if the error is a fault of the program."""
    # Imported here, because these modules take most of a second, and most commands do not fail.
    from gatehouse.foundation.settings import BadSettings
    from gatehouse.foundation.storage.failures import DATABASE_ERRORS, describe
    from gatehouse.foundation.storage.migrate import SchemaDrift

    if isinstance(error, (BadSettings, SchemaDrift)):
        return str(error)
    return f"database: {describe(error)}" if isinstance(error, DATABASE_ERRORS) else None
