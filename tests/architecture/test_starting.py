"""A worker does not load rarely used libraries before the first request."""

import subprocess
import sys

_LOADED = "import sys, gatehouse.platform.worker.process; print(*sys.modules, sep='\\n')"
#: large libraries that few installations need
_UNWANTED = {"scim2_models", "prompt_toolkit", "typer", "onnxruntime", "scipy", "duckdb", "opentelemetry.proto"}


def test_a_worker_starts_without_rarely_used_libraries() -> None:
    output = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    assert "gatehouse.platform.worker.process" in output.stdout
    assert not _UNWANTED & set(output.stdout.split())
