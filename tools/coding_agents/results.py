"""Writes the results of the cases to docs/clients: a table of all clients, and a line on the page of each."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

from tools.coding_agents.clients import CLIENTS, Client
from tools.coding_agents.pages import PAGES

TABLE_PAGE: Final = "tested.md"
PASSED: Final = "passed"
FAILED: Final = "FAILED"
#: The client has no such case. Most agents only use streaming.
NOT_RUN: Final = "-"
HEAD: Final = "| Client | Version | API | Not streamed | Streamed | Date |\n|---|---|---|---|---|---|\n"

_LINE = re.compile(r"^Tested with .*$", re.MULTILINE)
_ROW = re.compile(r"^\| \[.+?\]\((.+?)\.md\) \|.*\|$", re.MULTILINE)


class Row(NamedTuple):
    """The result of a case with the providers of all formats."""

    client: str
    version: str
    api: str
    is_streamed: bool
    passed: bool


def publish(rows: Sequence[Row], *, folder: Path = PAGES, today: date | None = None) -> None:
    """Write the results of these clients. The results of other clients are kept."""
    today = today or datetime.now(UTC).date()
    table = folder / TABLE_PAGE
    text = table.read_text("utf-8")
    lines = {client: [line[0] for line in _ROW.finditer(text) if line[1] == client] for client in CLIENTS}
    for name in dict.fromkeys(row.client for row in rows):
        client = CLIENTS[name]
        own = [row for row in rows if row.client == name]
        page = folder / f"{name}.md"
        content = page.read_text("utf-8")
        page.write_text(_LINE.sub(page_line(client, own[0].version, today), content, count=1), "utf-8")
        lines[name] = list(_table_rows(content, own, today))
    before, _, after = text.partition(HEAD)
    table.write_text(
        before + HEAD + "".join(f"{line}\n" for line in _all(lines)) + "\n" + _ROW.sub("", after).lstrip(), "utf-8"
    )


def page_line(client: Client, version: str, today: date) -> str:
    """Return the line of a client's page."""
    return f"Tested with `{client.package}` {version} on {today}, see [tested versions]({TABLE_PAGE})."


def _table_rows(page: str, rows: Sequence[Row], today: date) -> Iterator[str]:
    """Yield a line of the table for each API."""
    title = page.partition("\n")[0].removeprefix("# ")
    for api in dict.fromkeys(row.api for row in rows):
        cells = [_cell(row for row in rows if (row.api, row.is_streamed) == (api, kind)) for kind in (False, True)]
        yield f"| [{title}]({rows[0].client}.md) | {rows[0].version} | {api} | {' | '.join(cells)} | {today} |"


def _cell(rows: Iterable[Row]) -> str:
    passed = [row.passed for row in rows]
    if not passed:
        return NOT_RUN
    return PASSED if all(passed) else FAILED


def _all(lines: dict[str, list[str]]) -> Iterator[str]:
    for own in lines.values():
        yield from own
