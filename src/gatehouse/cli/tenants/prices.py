"""Implements `prices list`, `prices export`, `prices update`."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatehouse.cli.main import CommandError
from gatehouse.cli.tenants.tenant_changes import run_changes

if TYPE_CHECKING:
    from gatehouse.platform.changes.change import Change
    from gatehouse.platform.routing.model_catalog.catalog_updates import EntryUpdate
    from gatehouse.platform.routing.model_catalog.known_models import KnownModels

#: The headings of the columns of prices, which are in USD per million tokens.
_PRICE_HEADINGS = ("INPUT", "OUTPUT", "CACHED INPUT", "CACHE WRITE")

_file = click.option(
    "-f", "--file", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file in the form that `gatehouse prices export` prints, instead of the data of this version.",
)  # fmt: skip


@click.group(epilog="Example: gatehouse prices list --vendor openai")
def prices() -> None:
    """List known models with their prices, and update the catalog from them."""


@prices.command("list", epilog="Example: gatehouse prices list --vendor openai")
@_file
@click.option("--vendor", help="Only the models of this vendor, such as openai.")
def list_prices(file: Path | None, vendor: str | None) -> None:
    """List known models. Prices are in USD per million tokens."""
    from gatehouse.platform.routing.model_catalog.table import PRICES

    known = _known(file)
    if vendor is not None and all(vendor != name for name, _ in known.models):
        names = ", ".join(sorted({name for name, _ in known.models}))
        raise CommandError(f"--vendor: there are no models of {vendor}; use one of {names}")
    rows: list[tuple[str, ...]] = [("MODEL", *_PRICE_HEADINGS, "CONTEXT", "MAX OUTPUT", "RECORDED ON", "SOURCE")]
    for (name, model_id), model in known.models.items():
        if vendor in {None, name}:
            columns = {} if model.usd_per_million_tokens is None else model.usd_per_million_tokens.columns
            shown = [_per_million(columns.get(column)) for column in PRICES]
            limits = [str(limit or "-") for limit in (model.context_window, model.max_output_tokens)]
            rows.append((f"{name}/{model_id}", *shown, *limits, str(model.recorded_on), model.source_url))
    _print_table(rows)


@prices.command(epilog="Example: gatehouse prices export > prices.toml")
def export() -> None:
    """Print the presets and models of this version, as a file that `gatehouse prices update -f` reads."""
    from gatehouse.platform.routing.model_catalog import known_models
    from gatehouse.platform.routing.providers import presets

    click.echo(presets.BUILT_IN.read_text("utf-8"))
    click.echo(known_models.BUILT_IN.read_text("utf-8"), nl=False)


@prices.command(epilog="Example: gatehouse prices update -f prices.toml --all --dry-run")
@_file
@click.option("--tenant", help="The organization's slug. [default: default]")
@click.option("--all", "every", is_flag=True, help="All organizations.")
@click.option("--dry-run", is_flag=True, help="Show the changes and store nothing.")
def update(file: Path | None, tenant: str | None, every: bool, dry_run: bool) -> None:
    """Update prices, limits and capabilities of the catalog from a file, or from the data of this version. A file can
    also add and replace presets and known models. Models may belong to a preset that an earlier file added.

    Prices that an administrator set stay. Without a file, prices that came from a file stay too. Limits and
    capabilities are set if they are unknown. A file also replaces those that are equal to the data of this version or
    of an earlier file. All others stay; the command lists them if the file has other values. The changes of an
    organization are stored together or not at all, and running workers receive them.
    """
    from gatehouse.platform.routing.model_catalog.catalog_updates import update_catalog
    from gatehouse.platform.routing.model_catalog.vendor_data import store_file, with_earlier_presets

    if every and tenant is not None:
        raise CommandError("--tenant and --all exclude each other: leave one out")
    data = _known(file, with_earlier=True)

    async def work(change: "Change") -> "tuple[list[EntryUpdate], dict[str, bool]]":
        known = await with_earlier_presets(change.session, data)
        updates = await update_catalog(change, known, "known_models" if file is None else "price_file")
        return updates, {} if file is None else await store_file(change, known)

    results = run_changes(None if every else tenant or "default", work, dry_run=dry_run)
    presets = [
        (slug, preset_id, "replaced" if replaces else "added")
        for slug, (_, changed) in results.items()
        for preset_id, replaces in changed.items()
    ]
    if presets:
        _print_table([("ORGANIZATION", "PRESET", "CHANGE"), *presets])
    updates = [(slug, update) for slug, (updates, _) in results.items() for update in updates]
    rows = [
        (slug, update.model, *_differences(update), str(update.recorded_on), _changes(update.changed) or "-")
        for slug, update in updates
        if update.is_changed
    ]
    if rows:
        _print_table([("ORGANIZATION", "MODEL", *_PRICE_HEADINGS, "RECORDED ON", "LIMITS AND CAPABILITIES"), *rows])
    kept = [
        (slug, update.model, name, _value(old), _value(new))
        for slug, update in updates
        for name, (old, new) in update.kept.items()
        if file is not None
    ]
    if kept:
        click.echo("Limits and capabilities that stay, because they are not from the data of this version:")
        _print_table([("ORGANIZATION", "MODEL", "FIELD", "STAYS", "IN THE FILE"), *kept])
    done = "to update (nothing is stored)" if dry_run else "updated"
    click.echo(f"Models {done}: {len(rows)}. Prices are in USD per million tokens.")


@prices.command(epilog="Example: gatehouse prices remove in-house --all")
@click.argument("vendor")
@click.option("--tenant", help="The organization's slug. [default: default]")
@click.option("--all", "every", is_flag=True, help="All organizations.")
def remove(vendor: str, tenant: str | None, every: bool) -> None:
    """Remove the preset of a vendor, with its quirks, and the vendor's known models, which came from files of
    `gatehouse prices update -f`.

    If this version has a preset of the same name, it applies again. Providers that were added with the preset stay,
    without its quirks. Entries of the catalog keep their prices, limits and capabilities.
    """
    from gatehouse.platform.routing.model_catalog.vendor_data import remove_vendor

    if every and tenant is not None:
        raise CommandError("--tenant and --all exclude each other: leave one out")

    async def work(change: "Change") -> bool:
        return await remove_vendor(change, vendor)

    removed = [slug for slug, done in run_changes(None if every else tenant or "default", work).items() if done]
    if not removed:
        raise CommandError(f"there is no data of {vendor} from files in this organization; nothing was changed")
    click.echo(f"Removed the data of {vendor} from: {', '.join(removed)}.")


def _known(file: Path | None, *, with_earlier: bool = False) -> "KnownModels":
    from gatehouse.platform.routing.model_catalog.known_models import MAX_FILE_BYTES, BadPriceFile, built_in, parse

    if file is None:
        return built_in()
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise CommandError(f"{file}: the file has more than {MAX_FILE_BYTES} bytes")
        return parse(file.read_text("utf-8"), with_earlier=with_earlier)
    except UnicodeDecodeError:
        raise CommandError(f"{file}: the file is not UTF-8") from None
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None
    except BadPriceFile as error:
        faults = str(error).replace("\n", "\n  ")
        raise CommandError(f"{file} is invalid, nothing was changed:\n  {faults}") from None


def _differences(update: "EntryUpdate") -> list[str]:
    cells = []
    for name, new in update.new_prices.items():
        old = update.old_prices[name]
        cells.append(_per_million(new) if old == new else f"{_per_million(old)} -> {_per_million(new)}")
    return cells


def _changes(changed: Mapping[str, tuple[object, object]]) -> str:
    return ", ".join(f"{name}: {_value(old)} -> {_value(new)}" for name, (old, new) in changed.items())


def _value(value: object) -> str:
    """Return a limit or capability as in the file."""
    return "-" if value is None else str(value).lower()


def _per_million(price: Decimal | None) -> str:
    """Return a price per token as USD per million tokens."""
    return "-" if price is None else f"{(price * 1_000_000).normalize():f}"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
