"""The `gatehouse` command itself."""

import os
import subprocess
import sys


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


def test_a_bad_setting_is_one_line_without_a_traceback() -> None:
    command = [sys.executable, "-m", "gatehouse", "migrate"]
    environment = {**os.environ, "RATE_LIMIT_TIERS": "{"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 2
    assert result.stderr.startswith("gatehouse: ")
    assert "RATE_LIMIT_TIERS" in result.stderr
    assert len(result.stderr.splitlines()) == 1
