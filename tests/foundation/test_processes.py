"""Children that go on from what their parent is. Each in an interpreter of its own: the tests' has threads."""

import subprocess
import sys

HEAD = """
import os, signal, subprocess, sys, time
from pathlib import Path
from gatehouse.foundation.processes import Forked
def shown(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0")[0].decode()
def until(true):
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def told(program: str) -> str:
    command = [sys.executable, "-c", HEAD + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def test_a_child_has_what_its_parent_has_and_a_name_of_its_own() -> None:
    program = """
kept = {"only": "here"}
read, write = os.pipe()
def run():
    os.write(write, kept["only"].encode())
    time.sleep(60)
child = Forked("gatehouse: a test", run)
assert child.poll() is None
print(os.read(read, 99).decode(), "|", shown(child.pid))
child.kill()
print(child.wait(10))
"""
    assert told(program).splitlines() == ["here | gatehouse: a test", "-9"]


def test_it_ends_as_its_work_does_and_not_with_its_parents_words() -> None:
    program = """
def fails():
    raise SystemExit(3)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
codes = [Forked("gatehouse: a test", run).wait(10) for run in (lambda: None, fails)]
sleeping = Forked("gatehouse: a test", lambda: time.sleep(60))
try:
    sleeping.wait(0.05)
except subprocess.TimeoutExpired:
    codes.append("waits")
until(lambda: shown(sleeping.pid) == "gatehouse: a test")
sleeping.send_signal(signal.SIGTERM)
print(*codes, sleeping.wait(10), ended)
"""
    assert told(program) == "0 3 waits -15 []"
