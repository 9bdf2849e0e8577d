"""`gatehouse prices`: the data of this version, and faults of files and options."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.platform import RunningPlatform

from gatehouse.cli.main import cli
from gatehouse.platform.routing.model_catalog import known_models
from gatehouse.platform.routing.model_catalog.known_models import BUILT_IN, parse
from gatehouse.platform.routing.providers.presets import PRESETS


class Shell:
    def __init__(self, platform: RunningPlatform) -> None:
        self._environment = {"GATEHOUSE_HOME": str(platform.installed.home)}

    async def run(self, *words: str) -> Result:
        """Run the command in another thread, because it has its own event loop."""
        runner = CliRunner(env=self._environment)
        return await asyncio.to_thread(runner.invoke, cli, ["prices", *words])


@pytest.fixture
def shell(platform: RunningPlatform) -> Shell:
    return Shell(platform)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff", "not UTF-8"),
        (b"models = ", "not valid TOML"),
        (b"[openai.small]\nprice = 3\n", "line 1: openai.small.price"),
        (b"version = 2\n", "version: must be 1"),
        (b"presets = 1\n", "presets: must be a table"),
        (b"\n[presets.openai]\n", "line 2: presets.openai: an id has letters"),
        (b"\n[presets.mine]\nname = 3\n", "line 2: presets.mine.name"),
        (b"[presets.mine]\n[presets.mine.quirks]\nlimit_field = 'limit'\n", "line 2: presets.mine.quirks.limit_field"),
        (b"[presets.mine]\nquirks = { removed_fields = ['model'] }\n", "presets.mine.quirks.removed_fields.0"),
        (b"[presets.mine]\nquirks = { is_odd = true }\n", "line 1: presets.mine.quirks.is_odd"),
    ],
)
async def test_a_bad_file_is_named_and_changes_nothing(
    shell: Shell, tmp_path: Path, content: bytes, fault: str
) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(content)
    for words in (["update", "--all"], ["list"]):
        refused = await shell.run(*words, "-f", str(path))
        assert refused.exit_code == 1
        assert str(path) in refused.output
        assert fault in refused.output
    missing = await shell.run("update", "-f", str(tmp_path / "none.toml"))
    assert (missing.exit_code, "none.toml" in missing.output) == (2, True)


async def test_organizations_are_checked(shell: Shell) -> None:
    unknown = await shell.run("update", "--tenant", "nobody-at-all")
    assert (unknown.exit_code, "there is no organization nobody-at-all" in unknown.output) == (1, True)
    for words in (["update"], ["remove", "openai"]):
        both = await shell.run(*words, "--tenant", "default", "--all")
        assert (both.exit_code, "exclude each other" in both.output) == (1, True)


async def test_models_of_an_unknown_vendor_change_nothing(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text('[nobody.x]\nsource_url = "https://vendor.example"\nrecorded_on = 2026-11-01\n')
    refused = await shell.run("update", "-f", str(path))
    assert (refused.exit_code, "models of nobody" in refused.output) == (1, True)
    removed = await shell.run("remove", "nobody")
    assert (removed.exit_code, "there is no data of nobody" in removed.output) == (1, True)


async def test_the_data_is_listed_and_exported(shell: Shell, tmp_path: Path) -> None:
    listed = await shell.run("list", "--vendor", "openai")
    rows = listed.output.splitlines()[1:]
    assert (listed.exit_code, len(rows)) == (0, sum(vendor == "openai" for vendor, _ in known_models.built_in().models))
    assert all(row.startswith("openai/") and "https://" in row for row in rows)
    assert "use one of" in (await shell.run("list", "--vendor", "nobody")).output
    exported = await shell.run("export")
    assert exported.output.endswith(BUILT_IN.read_text("utf-8"))
    parsed = parse(exported.output)
    assert (dict(parsed.presets), parsed.models) == (dict(PRESETS), known_models.built_in().models)
    path = tmp_path / "prices.toml"
    path.write_text(exported.output)
    assert (await shell.run("list", "-f", str(path))).output == (await shell.run("list")).output
