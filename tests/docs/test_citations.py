"""Citations of documentation in the code, and in the pages themselves, name existing pages and sections."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("src", "tests", "bench", "training", "tools")
MODULES: Final = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in FOLDERS}

#: Files in other languages: a citation may be anywhere in them.
OTHER_FOLDERS: Final = ("console/src", "deploy", "docs", "src")
OTHER_SUFFIXES: Final = frozenset({".css", ".html", ".js", ".md", ".sql", ".ts", ".tsx", ".yaml", ".yml"})

#: Docstrings, comments on lines of their own, and comments behind code.
_PROSE = re.compile(r'^ *r?"""([\s\S]*?)"""|((?:^ *#[^\n]*\n?)+)|  (# [^\n]*)$', re.MULTILINE)
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md")
#: A page and a section of it: `docs/portal.md, "Tokens"`, or `docs/portal.md, Tokens` up to the next punctuation mark.
_SECTION = re.compile(r'\b(docs/[\w/-]+\.md), (?:"([^"\n]+)"|([A-Z][^"`;:.()|\n]+)[;:)])')
#: Documents that are not in the repository.
_OUTSIDE = re.compile(
    r"\b[Rr]eferences? \d|\b[Dd]ecisions?(\.md)?,? (section )?\d|\bdecisions, [A-Z]|\bdecisions of the contract"
)


def prose(source: str) -> str:
    """Return the comments and docstrings, each in one line, because citations wrap."""
    parts = ["".join(match.groups("")) for match in _PROSE.finditer(source)]
    return "\n".join(re.sub(r"\s*\n\s*(#:? )?", " ", part.strip()) for part in parts)


def wrong_citations(source: str) -> Iterator[str]:
    return wrong_in(prose(source))


def wrong_in(text: str) -> Iterator[str]:
    for page in _PAGE.findall(text):
        if not (ROOT / page).is_file():
            yield page
    for page, quoted, plain in _SECTION.findall(text):
        if (ROOT / page).is_file() and (quoted or plain) not in headings(page):
            yield f"{page}, {quoted or plain}"
    for outside in _OUTSIDE.finditer(text):
        yield outside[0]


def headings(page: str) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_cited_page_and_section_exist(folder: str) -> None:
    faults = {
        str(path.relative_to(ROOT)): wrong
        for path in MODULES[folder]
        if path != Path(__file__) and (wrong := list(wrong_citations(path.read_text("utf-8"))))
    }
    assert faults == {}


def test_citations_in_files_of_other_languages_exist() -> None:
    files = [path for folder in OTHER_FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in OTHER_SUFFIXES]
    faults = {
        str(path.relative_to(ROOT)): wrong
        for path in [*files, ROOT / "ARCHITECTURE.md", ROOT / "README.md"]
        if (wrong := list(wrong_in(path.read_text("utf-8"))))
    }
    assert len(files) > 100
    assert faults == {}


@pytest.mark.parametrize(
    "source",
    [
        '"""Users (docs/nobody.md)."""',
        '"""Tokens (docs/portal.md, "No such section")."""',
        '"""Tokens (docs/portal.md, No such section)."""',
        '"""Tokens of the portal (docs/portal.md, No such\nsection)."""',
        "#: Tokens of the portal (docs/portal.md, No such\n#: section).",
        '"""Users (reference 2, Users)."""',
        '"""Reference 1, Rate limiting."""',
        '"""Users (decisions 7)."""',
        "# Users (decisions.md section 11).",
        '"""Records (decisions, Records)."""',
        "row = 1  # the oldest (reference 3, Records)",
        '"""Policy rules (decisions of the contract: Policy engine)."""',
    ],
)
def test_a_wrong_citation_is_noticed(source: str) -> None:
    assert list(wrong_citations(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Tokens (docs/portal.md)."""',
        '"""Tokens (docs/portal.md, "Tokens")."""',
        '"""Tokens (docs/portal.md, Tokens; RFC 7519)."""',
        '"""Service accounts (docs/authentication.md, Service\naccounts)."""',
        '"""Replays decisions, and the reference of an entry. Decisions of the policy are compared."""',
    ],
)
def test_a_right_citation_is_accepted(source: str) -> None:
    assert list(wrong_citations(source)) == []


#: A file of the repository in backticks, and a module or one of its names.
_FILE = re.compile(r"`([\w-]+(?:/[\w-]+)+\.py)`")
_MODULE = re.compile(r"`((?:engine|foundation|ingress|stages)(?:\.[a-z_]+)+(?:\.[A-Z_]+)?)`")
#: Pages whose recipes name the files of an example, and pages about earlier states of the code.
WITHOUT_FILES: Final = frozenset({"CONTRIBUTING.md", "CHANGELOG.md", "bench/mutants.md"})


def wrong_names(text: str) -> Iterator[str]:
    """Yield the files and modules in backticks that do not exist. A path or module may lack its first parts."""
    for path in _FILE.findall(text):
        if not any(file.endswith("/" + path) for file in PYTHON_FILES):
            yield path
    for name in _MODULE.findall(text):
        parts = name.split(".")
        if not _exists(parts, []) and not _exists(parts[:-1], parts[-1:]):
            yield name


def _exists(module: list[str], names: list[str]) -> bool:
    """Return whether a module exists that contains the names."""
    path = "/" + "/".join(module)
    files = [ROOT / file[1:] for file in PYTHON_FILES if file.endswith((path + ".py", path + "/__init__.py"))]
    return any(all(re.search(rf"\b{name}\b", file.read_text("utf-8")) for name in names) for file in files)


PYTHON_FILES: Final = tuple("/" + str(path.relative_to(ROOT)) for paths in MODULES.values() for path in paths)


def test_named_files_and_modules_exist() -> None:
    pages = [path for path in ROOT.glob("docs/**/*.md") if "reference" not in path.parts]
    pages += [*ROOT.glob("*.md"), *ROOT.glob("bench/*.md")]
    texts = {path: path.read_text("utf-8") for path in pages if str(path.relative_to(ROOT)) not in WITHOUT_FILES}
    texts |= {path: prose(path.read_text("utf-8")) for paths in MODULES.values() for path in paths}
    del texts[Path(__file__)]
    faults = {str(path.relative_to(ROOT)): wrong for path, text in texts.items() if (wrong := list(wrong_names(text)))}
    assert faults == {}


@pytest.mark.parametrize("text", ["`access/nobody.py`", "`engine.nobody.X`", "`engine.exchange.NOBODY`"])
def test_a_wrong_name_is_noticed(text: str) -> None:
    assert list(wrong_names(text)) == [text.strip("`")]
