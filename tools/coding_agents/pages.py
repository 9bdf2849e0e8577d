"""The code blocks on the pages in docs/clients, and the values that are filled in when they are run."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "clients"
#: Placeholders on the pages for the reader's own values.
SHOWN_URL: Final = "http://127.0.0.1:8000"
SHOWN_KEY: Final = "gk_..."
#: The models on the pages. The test's provider offers the same models under another provider name.
MODELS: Final = ("gpt-5.5", "claude-sonnet-5", "claude-haiku-4-5")
INSTALL: Final = "Install"

_MODEL = re.compile(rf"(?:openai|anthropic)/({'|'.join(map(re.escape, MODELS))})\b")
_HEADING = re.compile(r"^## (.+)$")
_FENCE = re.compile(r"^```(\w+)$")
#: The line before a block with a file's content.
_FILE = re.compile(r"^In `(.+?)`.*:$")


class Block(NamedTuple):
    """A code block. If it is the content of a file, `file` is the file's path, else None."""

    section: str
    language: str
    file: str | None
    text: str


class Values(NamedTuple):
    """The reader's own values."""

    url: str
    key: str
    provider: str


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page in their order. `page` is the file's name without `.md`."""
    return list(_blocks((PAGES / f"{page}.md").read_text("utf-8")))


def _blocks(text: str) -> Iterator[Block]:
    section, sentence, language, lines = "", "", None, list[str]()
    for line in text.splitlines():
        if language is not None:
            if line == "```":
                file = _FILE.match(sentence)
                yield Block(section, language, file[1] if file else None, "\n".join(lines) + "\n")
                language, sentence, lines = None, "", []
            else:
                lines.append(line)
        elif fence := _FENCE.match(line):
            language = fence[1]
        elif heading := _HEADING.match(line):
            section = heading[1]
        elif line:
            sentence = line


def packages(page: str) -> tuple[str | None, list[str]]:
    """Return the installer (`pip` or `npm`) and the packages of the section `Install`, if there is one."""
    lines = [block.text for block in blocks(page) if block.section == INSTALL]
    if not lines:
        return None, []
    installer, command, *names = shlex.split("".join(lines))
    if installer not in {"pip", "npm"} or command != "install":
        raise ValueError(f"{page}: the section {INSTALL} installs with pip or npm")
    return installer, [name for name in names if name != "-g"]


def filled(text: str, values: Values) -> str:
    """Return the text of a block with the reader's values."""
    text = text.replace(SHOWN_URL, values.url).replace(SHOWN_KEY, values.key)
    return _MODEL.sub(rf"{values.provider}/\1", text)
