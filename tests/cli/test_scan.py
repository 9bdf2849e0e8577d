"""`gatehouse scan`, as a pre-commit hook and as a filter."""

import json
from pathlib import Path

from click.testing import CliRunner

from gatehouse.cli.main import cli

KEY = "AKIA" + "Z7Q2MXR4TNVB5KLP"
CARD = "4242 4242 4242 4242"


def run(*arguments: str, text: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["scan", *arguments], input=text)
    return result.exit_code, result.output


def test_a_secret_in_a_folder_is_named_by_its_place_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "settings.py").write_text(f'import os\n\nkey = "{KEY}"\n')
    status, out = run(str(tmp_path))
    assert status == 1
    assert out.startswith(f"{tmp_path}/sub/settings.py:3:8: aws_access_key")
    assert KEY not in out


def test_without_findings_the_status_is_zero(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Hello, world. Write to a@example.com.")
    assert run(str(tmp_path)) == (0, "")


def test_logged_findings_are_shown_on_demand(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Write to a@example.com.")
    status, out = run(str(tmp_path), "--least", "log_only")
    assert (status, "email" in out) == (1, True)


def test_the_help_shows_examples_that_can_be_pasted() -> None:
    lines = [line.strip() for line in run("--help")[1].splitlines()]
    assert {"gatehouse scan src README.md", "git diff --cached | gatehouse scan -"} <= set(lines)


def test_standard_input_and_json_lines() -> None:
    status, out = run("-", "--json", text=f"first line\ncard {CARD}, key {KEY}")
    results = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [(line["entity_type"], line["line"], line["column"]) for line in results] == [
        ("credit_card", 2, 6), ("aws_access_key", 2, 31),
    ]  # fmt: skip
    assert (results[0]["path"], results[0]["start"], results[0]["end"]) == ("-", 16, 35)


def test_findings_can_be_limited_to_a_category() -> None:
    status, out = run("-", "--category", "financial", text=f"card {CARD}, key {KEY}")
    assert (status, len(out.splitlines())) == (1, 1)
    assert "credit_card" in out


def test_an_unknown_category_is_named() -> None:
    status, out = run("-", "--category", "food", text="")
    assert status == 2
    assert "food" in out


def test_a_path_that_is_not_there_is_status_two(tmp_path: Path) -> None:
    status, out = run(str(tmp_path / "none"))
    assert (status, "No such file" in out) == (2, True)


def test_binary_and_too_large_files_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0" + KEY.encode())
    (tmp_path / "b.txt").write_text(KEY * 10)
    status, out = run(str(tmp_path), "--max-bytes", "100")
    assert status == 0
    assert "skipped" in out
