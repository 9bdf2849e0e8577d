"""The inputs that fuzzing has stored are tested again. `bench/fuzz.py` defines the conditions that must hold for any
bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[3] / "bench" / "fuzz.py"


def run(target: str, **env: str) -> None:
    # Run in a separate process, because the fuzzed parts are set up for the whole process.
    command = [sys.executable, str(FUZZ), "--seeds", "--only", target]
    ran = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(ran.stdout.split()[1]) > 50


def test_stored_client_inputs_pass(ingress: str) -> None:
    run("request", INGRESS=ingress)


@pytest.mark.parametrize("ingress", ["none"])
def test_stored_provider_inputs_pass(ingress: str) -> None:
    run("reply")
