"""Generates a family of the administration API that has a table of its own, from the templates in `tools/family/`.

    make new-family NAME=notes ONE=note CHAPTER=governance

CONTRIBUTING.md lists the files. Nothing is written if a name is in use.
"""

import argparse
import keyword
import re
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TEMPLATES: Final = Path(__file__).parent / "family"
SOURCE: Final = "src/gatehouse"
PLATFORM: Final = f"{SOURCE}/platform"
VERSIONS: Final = f"{PLATFORM}/migrations/versions"
#: Characters of a name. Longer ones would not fit into the templates' lines.
MAX_NAME_CHARACTERS: Final = 30
LEFT_TO_DO: Final = """\
To do by hand:
    the family's own fields, in table, schemas, SQL and tests
    the purpose of a row, in the docstring of the package and on the page
    a line in CHANGELOG.md
    make reference"""


class Refused(Exception):
    """The family cannot be generated."""


def values(name: str, one: str, chapter: str) -> dict[str, str]:
    """Return the values of the templates' placeholders. Raises `Refused` if a name has the wrong form."""
    for word in (name, one):
        if not re.fullmatch(r"[a-z]+(_[a-z]+)*", word) or keyword.iskeyword(word) or len(word) > MAX_NAME_CHARACTERS:
            raise Refused(f"{word!r} is not a name of up to {MAX_NAME_CHARACTERS} lowercase letters and underscores")
    if name == one:
        raise Refused("NAME is the plural, ONE the singular: they must differ")
    chapters = sorted({path.parts[-3] for path in (ROOT / PLATFORM).glob("*/*/routes.py")})
    if chapter not in chapters:
        raise Refused(f"CHAPTER is one of {', '.join(chapters)}")
    previous = max(path.name[1:5] for path in (ROOT / VERSIONS).glob("r????_*.py"))
    things, thing = name.replace("_", " "), one.replace("_", " ")
    article = "an" if thing[0] in "aeiou" else "a"
    return {
        "name": name,
        "NAME": name.upper(),
        "Many": name.title().replace("_", ""),
        "one": one,
        "One": one.title().replace("_", ""),
        "slug": name.replace("_", "-"),
        "chapter": chapter,
        "module": f"gatehouse.platform.{chapter}.{name}",
        "things": things,
        "Things": things.capitalize(),
        "thing": thing,
        "Thing": thing.capitalize(),
        "a_thing": f"{article} {thing}",
        "A_thing": f"{article.capitalize()} {thing}",
        "full": f"The organization has the maximum number of {things}. Delete some first.",
        "number": f"{int(previous) + 1:04}",
        "previous": previous,
    }


def require_unused(names: dict[str, str]) -> None:
    """Raises `Refused` if the source has a table, path, class, lock or audit action of this name."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / SOURCE).rglob("*") if path.suffix in {".py", ".sql"}}
    for pattern in (
        r"CREATE TABLE $name\b",
        r"\b$NAME = \"",
        r"\"/api/admin/$slug[/\"]",
        r"\bclass (New)?$One(List|Update|Row|NotFound)?\b",
        r"\bTooMany$Many\b",
        r"\"$one\.\w+\":",
        r"\{${one}_id\}",
        r"\bas $name\n",
    ):
        expression = re.compile(Template(pattern).substitute(names))
        for path, text in texts.items():
            if match := expression.search(text):
                raise Refused(f"{path.relative_to(ROOT)} has {match[0].strip()!r} already")


def new_files(names: dict[str, str]) -> dict[str, str]:
    """Return the texts of the family's files by path. Raises `Refused` if one exists."""
    folder = f"{PLATFORM}/$chapter/$name"
    templates = {f"{folder}/{part}.py": part for part in ("__init__", "routes", "schemas", "service", "table")}
    templates |= {
        f"{VERSIONS}/r${{number}}_$name.py": "migration",
        f"{VERSIONS}/r${{number}}_$name.sql": "sql",
        "tests/platform/$chapter/test_$name.py": "test",
        "docs/$slug.md": "page",
    }
    files: dict[str, str] = {}
    for path, template in templates.items():
        file = Template(path).substitute(names)
        if (ROOT / file).exists():
            raise Refused(f"{file} exists")
        files[file] = Template((TEMPLATES / f"{template}.txt").read_text("utf-8")).substitute(names)
    if (ROOT / PLATFORM / names["chapter"] / names["name"]).exists():
        raise Refused(f"{names['chapter']} has a module {names['name']} already")
    return files


class Edited:
    """A file to which lines are added. Raises `Refused` if it has no such place."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = (ROOT / path).read_text("utf-8").splitlines()

    def _first(self, pattern: str, start: int = 0) -> int:
        for index in range(start, len(self.lines)):
            if re.match(pattern, self.lines[index]):
                return index
        raise Refused(f"{self.path} has no line {pattern!r}: adapt tools/new_family.py")

    def before(self, pattern: str, *lines: str) -> "Edited":
        """Insert before the first line that begins with the pattern."""
        index = self._first(pattern)
        self.lines[index:index] = lines
        return self

    def at_end_of(self, opening: str, closing: str, *lines: str) -> "Edited":
        """Insert before the line that closes a collection."""
        index = self._first(closing, self._first(opening) + 1)
        self.lines[index:index] = lines
        return self

    def sorted_into(self, heading: str, pattern: str, line: str) -> "Edited":
        """Insert in order into the first run of lines with the pattern after the heading."""
        index = self._first(pattern, self._first(heading))
        while index < len(self.lines) and re.match(pattern, self.lines[index]) and self.lines[index] < line:
            index += 1
        self.lines.insert(index, line)
        return self

    def appended_to(self, pattern: str, end: str, text: str) -> "Edited":
        """Insert text before the end of the first line that begins with the pattern."""
        index = self._first(pattern)
        self.lines[index] = f"{self.lines[index].removesuffix(end)}{text}{end}"
        return self

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def registrations(names: dict[str, str]) -> dict[str, str]:
    """Return the new texts of the files that list families, by path."""

    def of(text: str) -> str:
        return Template(text).substitute(names)

    edited = [
        Edited(f"{PLATFORM}/administration/contents.py")
        .before(r"from gatehouse\.platform\.", of("from $module.routes import router as $name"))
        .at_end_of(r"FAMILIES\b.*\($", r"\)", of("    $name,")),
        Edited(f"{PLATFORM}/changes/chain/actions.py").at_end_of(
            r"ACTIONS\b.*\{$",
            r"\}",
            *(of(f'    "$one.{verb}": "$A_thing was {verb}.",') for verb in ("created", "updated", "deleted")),
        ),
        Edited(f"{SOURCE}/foundation/storage/locks.py").sorted_into(
            r"class ScopedLock\b", r"    [A-Z_]+ = \"", of('    $NAME = "$name"')
        ),
        Edited("tests/platform/scenarios/test_caps.py").at_end_of(
            r"FAMILIES\b.*\{$",
            r"\}",
            of('    "$things": ('),
            of('        f"{P}.$chapter.$name.service.MAX_$NAME",'),
            of('        _post("/api/admin/$slug", name="NAME"),'),
            "    ),",
        ),
        Edited("tests/contract/conftest.py").at_end_of(
            r"    ids = \{$",
            r"    \}",
            of(
                '        "${one}_id": (await other.admin.client.post("/api/admin/$slug", json={"name": "x"}))'
                '.json()["id"],'
            ),
        ),
        Edited("docs/variants.md").sorted_into(
            r"## Sizes of lists", r"\| `GET ", of("| `GET /api/admin/$slug` | `limit` | 50 | 200 |")
        ),
        Edited("docs/errors.md").sorted_into(
            r"## Administration's codes", r"\| 409 \| `", of("| 409 | `too_many_$name` | $full |")
        ),
        Edited("ARCHITECTURE.md").appended_to(of(r"\| `$chapter` \| "), " |", of(", `$name`")),
        Edited("mkdocs.yml").before(r"      - Errors: errors\.md", of("      - $Things: $slug.md")),
    ]
    return {file.path: file.text for file in edited}


def generate(name: str, one: str, chapter: str) -> list[str]:
    """Write the family. Returns the paths that are new or changed. Raises `Refused`."""
    names = values(name, one, chapter)
    created = new_files(names)
    require_unused(names)
    changed = registrations(names)
    for path, text in (created | changed).items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, "utf-8")
    # The order of imports and the breaks of lines depend on the names.
    python = [path for path in created | changed if path.endswith(".py")]
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "--quiet", "--no-cache", *python], cwd=ROOT, check=True)
    return [*created, *changed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="plural: folder, table, path; for example release_notes")
    parser.add_argument("one", help="singular: classes, audit actions; for example release_note")
    parser.add_argument("chapter", help="folder below src/gatehouse/platform")
    arguments = parser.parse_args()
    try:
        paths = generate(arguments.name, arguments.one, arguments.chapter)
    except Refused as refusal:
        parser.error(str(refusal))
    print(*paths, sep="\n")
    print(LEFT_TO_DO)


if __name__ == "__main__":
    main()
