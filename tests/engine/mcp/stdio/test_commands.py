"""The operator's file of commands (docs/mcp.md)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.stdio_servers import commands_file

from gatehouse.engine.mcp.stdio.commands import read_commands
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import BadSettings

MINIMAL = {"command": [sys.executable], "organizations": ["*"]}


def test_without_a_path_there_are_no_commands() -> None:
    assert read_commands(None) is None


def test_a_command_is_offered_to_the_listed_organizations(tmp_path: Path) -> None:
    own, other = str(new_id()), str(new_id())
    commands = read_commands(commands_file(tmp_path, {"all": MINIMAL, "own": {**MINIMAL, "organizations": [own]}}))
    assert commands is not None
    assert commands.offered("all", other) is not None
    assert commands.offered("own", own) is not None
    assert commands.offered("own", other) is None
    assert commands.offered("none", own) is None


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"command": ["python3"]}, "python3 is not the absolute path of an executable file"),
        ({"command": ["/none"]}, "/none is not the absolute path of an executable file"),
        ({"command": []}, "command"),
        ({"organizations": []}, "organizations is empty"),
        ({"organizations": ["acme"]}, "acme is not the id of an organization"),
        ({"environment": ["LD_PRELOAD"]}, "must not set LD_PRELOAD"),
        ({"environment": ["PYTHONPATH"]}, "must not set PYTHONPATH"),
        ({"environment": ["PATH"]}, "must not set PATH"),
        ({"environment": ["UV_INDEX_URL"]}, "must not set UV_INDEX_URL"),
        ({"environment": ["HTTPS_PROXY"]}, "must not set HTTPS_PROXY"),
        ({"environment": ["token"]}, "environment"),
        ({"environment": ["A"], "fixed_environment": {"A": "b"}}, "A is in environment and in fixed_environment"),
        ({"working_directory": "here"}, "working_directory is not an absolute path"),
        ({"memory": 5}, "memory"),
        ({"memory_mib": 1}, "memory_mib"),
    ],
)
def test_a_faulty_command_is_refused(tmp_path: Path, fields: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadSettings, match="MCP_STDIO_COMMANDS") as refused:
        read_commands(commands_file(tmp_path, {"a": {**MINIMAL, **fields}}))
    assert fault in str(refused.value)


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    path = commands_file(tmp_path, {"a": MINIMAL})
    path.chmod(0o620)
    with pytest.raises(BadSettings, match="chmod go-w"):
        read_commands(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="No such file"):
        read_commands(tmp_path / "none.json")
    path = tmp_path / "commands.json"
    path.write_text(json.dumps({"commands": []}))
    path.chmod(0o600)
    with pytest.raises(BadSettings, match="is not valid"):
        read_commands(path)
