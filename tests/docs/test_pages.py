"""The pages are correct: their settings, commands, links and actions are compared with the code."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from gatehouse.cli.main import cli
from gatehouse.foundation.settings import Settings
from gatehouse.platform.changes.chain.actions import ACTIONS

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md"), ROOT / "bench/README.md"]
)


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _code(text: str) -> str:
    """Return fenced and indented blocks, and words in backticks, one per line."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4,}(\S.*)$", text, re.MULTILINE)
    return "\n".join([*fenced, *indented, *re.findall(r"`([^`\n]+)`", text)])


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_every_setting_is_explained(setting: str) -> None:
    assert re.search(rf"^\| `{setting.upper()}` \| .+ \| .+ \|$", _text("docs/settings.md"), re.MULTILINE)


def test_only_existing_settings_are_explained() -> None:
    results = re.findall(r"^\| `([A-Z_]+)` \|", _text("docs/settings.md"), re.MULTILINE)
    assert {name.lower() for name in results} == set(Settings.model_fields)


def test_the_example_environment_names_settings_only() -> None:
    named = re.findall(r"^#?([A-Z_]+)=", _text(".env.example"), re.MULTILINE)
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_every_audit_action_is_documented() -> None:
    """Each action has a description, and the page names the endpoint that lists them."""
    assert all(meaning.endswith(".") for meaning in ACTIONS.values())
    assert "GET /v1/audit/actions" in _text("docs/records.md")


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = (page.parent / file) if file else page
        assert to.exists(), target
        if anchor:
            assert anchor in _anchors(to), target


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    for words in re.findall(r"(?:^|[\s;&|(])gatehouse ([a-z][^`\n;|&)]*)", _code(page.read_text("utf-8"))):
        _check_command(words)


def _check_command(words: str) -> None:
    """Check that each command and option of this command line exists."""
    command: click.Command = cli
    for word in shlex.split(words.replace("'", "")):
        if isinstance(command, click.Group):
            result = command.get_command(click.Context(command), word)
            assert result is not None, words
            command = result
        elif word.startswith("--"):
            known_options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
            assert word.partition("=")[0] in known_options, words


def test_the_command_line_answers_to_help() -> None:
    output = subprocess.run(
        [Path(sys.executable).parent / "gatehouse", "--help"], capture_output=True, text=True, check=True
    )
    assert "serve" in output.stdout


def test_help_names_only_deployables_that_can_be_served() -> None:
    serve = cli.get_command(click.Context(cli), "serve")
    assert serve is not None
    (served,) = (parameter.type for parameter in serve.params if parameter.name == "application")
    assert isinstance(served, click.Choice)
    for command in (cli, serve):
        result = command.get_help(click.Context(command)).lower()
        named = {name for name in ("platform", "portal", "outpost") if name in result}
        assert named == set(served.choices)


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", _text("Makefile"), re.MULTILINE))
    documented_targets = re.findall(r"(?:^|[\s`])make ([a-z-]+)", _code(page.read_text("utf-8")))
    assert set(documented_targets) <= targets


def test_the_architecture_names_what_exists() -> None:
    """Each word in backticks is a path of the project, or occurs in its code."""
    files = [path for path in (ROOT / "src/gatehouse").rglob("*") if "__pycache__" not in path.parts]
    code = "\n".join(path.read_text("utf-8") for path in files if path.suffix in {".py", ".sql"})
    for name in re.findall(r"`([^`]+)`", _text("ARCHITECTURE.md")):
        if " " in name or "GATEHOUSE_HOME/" in name:
            continue
        path = name.rstrip("/")
        is_path = (ROOT / path).exists() or any(str(file).endswith(f"/{path}") for file in files)
        assert is_path or all(word in code for word in re.findall(r"\w+", name)), name


def test_the_pages_are_all_in_the_navigation() -> None:
    def files(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        parts = entry.values() if isinstance(entry, dict) else entry
        assert not isinstance(parts, int)
        return [name for part in parts for name in files(part)]  # type: ignore[attr-defined]

    in_navigation = files(yaml.safe_load(_text("mkdocs.yml"))["nav"])
    all_pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    # The reference's index links to its other pages.
    listed = [str(page) for page in all_pages if page.parent.name != "reference" or page.name == "index.md"]
    assert sorted(in_navigation) == sorted(listed)


def test_the_pages_can_be_built(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "quickstart.html").exists()
    loaded = re.findall(
        r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', (tmp_path / "index.html").read_text()
    )
    assert loaded == []
