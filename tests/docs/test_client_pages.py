"""The pages of clients: all their lines are run by `tools.coding_agents`, and show the results of its last run."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.coding_agents.clients import CLIENTS, Case, Client
from tools.coding_agents.pages import INSTALL, PAGES, SHOWN_KEY, SHOWN_URL, Block, Values, blocks, filled, packages
from tools.coding_agents.results import FAILED, HEAD, NOT_RUN, PASSED, TABLE_PAGE, Row, page_line, publish
from tools.coding_agents.running import command
from tools.console import node_environment

VALUES = Values("http://127.0.0.1:9", "gk_key", "scripted")
PARSERS: dict[str, Callable[[str], Any]] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}


def cases() -> Iterator[Any]:
    for client in CLIENTS.values():
        for index, case in enumerate(client.cases):
            yield pytest.param(client, case, id=f"{client.name}-{index}")


def table_rows() -> dict[tuple[str, str], list[str]]:
    """Return the cells after the API, by the page and the API."""
    lines = (PAGES / TABLE_PAGE).read_text("utf-8").partition(HEAD)[2].partition("\n\n")[0].splitlines()
    rows = [re.split(r" \| ", line.strip("| ")) for line in lines]
    pages = [re.fullmatch(r"\[.+\]\((.+)\.md\)", row[0]) for row in rows]
    return {(page[1], row[2]): [row[1], *row[3:]] for page, row in zip(pages, rows, strict=True) if page}


def test_each_page_belongs_to_a_client() -> None:
    assert sorted(page.name for page in PAGES.glob("*.md")) == sorted([*(f"{name}.md" for name in CLIENTS), TABLE_PAGE])


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_every_line_to_paste_is_run(client: Client) -> None:
    shown = {block.section for block in blocks(client.name)} - {INSTALL}
    assert shown == {section for case in client.cases for section in case.sections}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_the_shown_values_are_replaced_by_those_of_the_run(client: Client) -> None:
    text = "".join(filled(block.text, VALUES) for block in blocks(client.name))
    assert VALUES.url in text
    assert VALUES.key in text
    assert VALUES.provider in text
    assert SHOWN_URL not in text
    assert SHOWN_KEY not in text
    # The names that remain belong to packages and to the clients' own providers.
    assert not re.search(r"(openai|anthropic)/(gpt|claude)", text)


@pytest.mark.parametrize(("client", "case"), cases())
def test_the_lines_are_valid(client: Client, case: Case, tmp_path: Path) -> None:
    for block in blocks(client.name):
        if block.file is not None:
            PARSERS[block.language](block.text)
    interpreter, *_, program = command(client, case, VALUES, tmp_path)
    if interpreter == "python":
        compile((tmp_path / program).read_text("utf-8"), program, "exec")
        return
    check = ["bash", "-n"] if interpreter == "bash" else ["node", "--check"]
    checked = subprocess.run(
        [*check, tmp_path / program], env=node_environment(), capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_the_installed_packages_include_the_tested_one(client: Client) -> None:
    installer, names = packages(client.name)
    assert installer is None or client.package in [re.sub(r"\[.*\]", "", name) for name in names]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_the_table_has_the_results_of_every_case(client: Client) -> None:
    rows = {api: cells for (page, api), cells in table_rows().items() if page == client.name}
    ways = {(case.api, case.is_streamed) for case in client.cases}
    assert {api: cells[1:3] for api, cells in rows.items()} == {
        api: [PASSED if (api, is_streamed) in ways else NOT_RUN for is_streamed in (False, True)]
        for api in {case.api for case in client.cases}
    }
    for version, _, _, day in rows.values():
        line = page_line(client, version, date.fromisoformat(day))
        assert (PAGES / f"{client.name}.md").read_text("utf-8").count(f"\n{line}\n") == 1


def test_publishing_replaces_the_results_of_the_clients_that_ran(tmp_path: Path) -> None:
    for page in PAGES.glob("*.md"):
        (tmp_path / page.name).write_text(page.read_text("utf-8"), "utf-8")
    before = (tmp_path / TABLE_PAGE).read_text("utf-8")
    rows = [Row("codex", "9.9.9", "responses", True, True), Row("codex", "9.9.9", "responses", True, False)]
    publish(rows, folder=tmp_path, today=date(2030, 1, 2))
    after = (tmp_path / TABLE_PAGE).read_text("utf-8")
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        f"| [Codex](codex.md) | 9.9.9 | responses | {NOT_RUN} | {FAILED} | 2030-01-02 |"
    ]
    assert len(after.splitlines()) == len(before.splitlines())
    line = "Tested with `@openai/codex` 9.9.9 on 2030-01-02, see [tested versions](tested.md)."
    assert line in (tmp_path / "codex.md").read_text("utf-8").splitlines()


def test_a_block_belongs_to_the_file_that_is_named_before_it() -> None:
    (block, *_) = [block for block in blocks("codex") if block.language == "toml"]
    assert block == Block("Connect", "toml", "~/.codex/config.toml", block.text)
    assert tomllib.loads(block.text)["model_provider"] == "gatehouse"


def test_the_command_refuses_unknown_clients() -> None:
    command_line = [sys.executable, "-m", "tools.coding_agents", "telnet"]
    run = subprocess.run(command_line, cwd=PAGES.parents[1], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "telnet" in run.stderr
