"""Forked children. Each test uses an interpreter of its own, because the interpreter of the tests has threads."""

import subprocess
import sys

HEAD = """
import os, signal, subprocess, sys, time
from pathlib import Path
from gatehouse.foundation.processes.children import SharedFlag, Forked, return_large_blocks
def shown(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0")[0].decode()
def until(true):
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def output_of(program: str) -> str:
    command = [sys.executable, "-c", HEAD + program]
    process = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return process.stdout.strip()


def test_a_child_shares_the_modules_of_its_parent_and_has_its_own_title() -> None:
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
    assert output_of(program).splitlines() == ["here | gatehouse: a test", "-9"]


def test_a_child_has_the_exit_code_of_its_work_and_does_not_run_its_parents_signal_handler() -> None:
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
    assert output_of(program) == "0 3 waits -15 []"


def test_a_flag_that_a_child_sets_is_set_in_all_processes() -> None:
    program = """
flag = SharedFlag()
before = bool(flag)
child = Forked("gatehouse: a test", flag.up)
until(lambda: flag)
print(before, child.wait(10))
"""
    assert output_of(program) == "False 0"


def test_a_large_block_is_returned_to_the_system() -> None:
    program = """
import ctypes
library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def left_over():
    before = resident()
    for _ in range(3):
        # Allocate a block of the size that password hashing uses, and then a small block that is not freed, so that
        # the freed block is not at the end of the heap.
        block = library.malloc(19 << 20)
        ctypes.memset(block, 1, 19 << 20)
        library.malloc(64)
        library.free(block)
    return (resident() - before) >> 20
if len(sys.argv) > 1:
    return_large_blocks()
print(left_over())
"""
    code = [sys.executable, "-c", HEAD + program]
    kept, returned = (
        int(subprocess.run([*code, *words], capture_output=True, text=True, timeout=30, check=True).stdout)
        for words in ([], ["return"])
    )
    # `kept` is what the C library keeps without the setting, in MiB. It must be at least 1, or the test would not show
    # that the setting has an effect.
    assert returned <= 1 <= kept
