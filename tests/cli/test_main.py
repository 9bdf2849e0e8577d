"""The `gatehouse` command itself."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest


def test_help_imports_no_large_library() -> None:
    program = """
import sys
from gatehouse.cli.main import cli
cli.main(["--help"], standalone_mode=False)
large = {"sqlalchemy", "alembic", "psycopg", "pydantic", "structlog", "asyncio"}
print(*sorted(large & set(sys.modules)), file=sys.stderr)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Commands" in result.stdout
    assert result.stderr.strip() == ""


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "GATEHOUSE_MASTER_KEY: needed with DATABASE_URL"),
        (base64.b64encode(bytes(32)).decode(), "DATABASE_URL: connection failed"),
    ],
)
def test_a_bad_setting_and_a_missing_database_are_one_line(key: str, message: str, tmp_path: Path) -> None:
    environment = {"GATEHOUSE_HOME": str(tmp_path), "DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    command = [sys.executable, "-m", "gatehouse", "migrate"]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False,
        env={**os.environ, **environment, "GATEHOUSE_MASTER_KEY": key},
    )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.startswith(f"gatehouse: {message}")
    assert len(result.stderr.splitlines()) == 1
