"""Implements `scan`, which searches files for the built-in patterns, without a server."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from gatehouse.engine.dlp.decide import Hit

#: A file that has a NUL byte in its first `_FIRST_BLOCK_BYTES` bytes is treated as binary.
_NUL: Final = b"\0"
_FIRST_BLOCK_BYTES: Final = 8192
_SKIPPED_FOLDERS: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
_ACTIONS: Final = ("log_only", "redact", "prompt", "block")


@click.command(epilog="Examples:\n\n  gatehouse scan src README.md\n\n  git diff --cached | gatehouse scan -")
@click.argument("paths", nargs=-1, required=True, metavar="PATH... | -")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per finding, instead of a line of text.")
@click.option(
    "--least",
    type=click.Choice(_ACTIONS),
    default="redact",
    show_default=True,
    help="Hide findings whose default action is weaker than this.",
)
@click.option("--category", "categories", multiple=True, help="Only patterns of this category; may be repeated.")
@click.option("--max-bytes", default=10_000_000, show_default=True, help="Larger files are skipped and reported.")
def scan(paths: tuple[str, ...], *, as_json: bool, least: str, categories: tuple[str, ...], max_bytes: int) -> None:
    """Look for secrets and personal data in files, folders or standard input (-).

    Prints positions, but never the text itself. The exit status is 1 if there are findings, and 2 if a path cannot be
    read, so the command can be used as a pre-commit hook.
    """
    from gatehouse.detection.pattern import CATEGORIES

    for category in categories:
        if category not in CATEGORIES:
            raise click.BadParameter(f"{category!r} is none of {', '.join(CATEGORIES)}", param_hint="--category")
    scanner = _FileScanner(least, frozenset(categories))
    files = list(_files(paths))
    hit_count = 0
    failed = False
    bar = click.progressbar(files, file=sys.stderr, hidden=not sys.stderr.isatty() or len(files) < 2)
    with bar as progress:
        for path in progress:
            try:
                text = _text(path, max_bytes)
            except OSError as error:
                click.echo(f"gatehouse: {path}: {error.strerror}", err=True)
                failed = True
                continue
            if text is None:
                continue
            for hit in scanner.hits(text):
                hit_count += 1
                click.echo(_line(path, text, hit, as_json=as_json))
    if failed:
        sys.exit(2)
    if hit_count:
        sys.exit(1)


class _FileScanner:
    def __init__(self, least: str, categories: frozenset[str]) -> None:
        from gatehouse.detection.catalog import BUILT_IN
        from gatehouse.detection.matcher import Matcher
        from gatehouse.policy.dlp.compile import compile_dlp
        from gatehouse.policy.governance import GovernanceRecords

        policy, _ = compile_dlp(GovernanceRecords(), {})
        selected = tuple(pattern for pattern in BUILT_IN if not categories or pattern.category in categories)
        self._matchers = (Matcher(selected),) if categories else policy.matchers
        self._policy = policy
        self._least = least

    def hits(self, text: str) -> "Iterator[Hit]":
        from gatehouse.detection.scanning.texts import scan as find_all
        from gatehouse.engine.dlp.decide import TierFindings, decide
        from gatehouse.policy.dlp.compiled import DLP_ACTION_STRENGTH

        for hit in decide(self._policy, TierFindings(find_all(self._matchers, text))).hits:
            if DLP_ACTION_STRENGTH[hit.effect] >= DLP_ACTION_STRENGTH[self._least]:
                yield hit


def _files(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
            yield from (str(Path(folder, name)) for name in sorted(names))


def _text(path: str, max_bytes: int) -> str | None:
    """Return the text of a file, or None if the file is binary or too large."""
    if path == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    file = Path(path)
    if not file.is_file() and not file.exists():
        raise FileNotFoundError(2, "No such file or folder")
    if not file.is_file():
        return None
    if file.stat().st_size > max_bytes:
        click.echo(f"gatehouse: {path}: larger than {max_bytes} bytes, skipped", err=True)
        return None
    raw = file.read_bytes()
    return None if _NUL in raw[:_FIRST_BLOCK_BYTES] else raw.decode("utf-8", "replace")


def _line(path: str, text: str, hit: "Hit", *, as_json: bool) -> str:
    start, end = hit.finding.start, hit.finding.end
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    if not as_json:
        return f"{path}:{line}:{column}: {hit.rule.entity_type} ({hit.rule.name}), {hit.effect}"
    return json.dumps(
        {
            "path": path,
            "line": line,
            "column": column,
            "start": start,
            "end": end,
            "entity_type": hit.rule.entity_type,
            "rule_id": hit.rule.id,
            "score": round(hit.finding.score, 4),
            "action_tier": hit.effect,
        }
    )
