"""The suite's own watch for secrets that are told: it finds what is planted, and only that."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from tests.support.leaks import Watch

SECRET = "gk_0123456789abcdefghijklmnopqrstuvwxyz"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def watch() -> Watch:
    return Watch()


def places(watch: Watch) -> list[str]:
    return [leak.place for leak in watch.leaks()]


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f'{{"detail": "no such key: {SECRET}"}}',
        f"x{SECRET}x",
        "\u00e9\u20ac" * 100 + SECRET,
        "x" * 300_000 + SECRET + "x" * 10,
        "x" * (256 * 1024 - 10) + SECRET,
        "x" * (4 * 1024 * 1024 - 20) + SECRET,
        SECRET.encode() + b"\xff\x00",
    ],
)
def test_a_secret_is_found_wherever_it_stands(watch: Watch, text: str | bytes) -> None:
    watch.saw("a log", "nothing here")
    watch.secret(SECRET, "a key")
    watch.saw("an answer", text)
    watch.saw("another", "nothing here either")
    assert places(watch) == ["an answer"]


def test_it_makes_no_difference_which_came_first(watch: Watch) -> None:
    watch.saw("a log", f"made {SECRET}")
    watch.secret(SECRET, "a key")
    assert places(watch) == ["a log"]


def test_a_secret_that_json_writes_otherwise_is_found(watch: Watch) -> None:
    password = 'a "quoted" pass\\word with \u00e9'
    watch.secret(password, "a password")
    watch.saw("an answer", json.dumps({"password": password}))
    watch.saw("a log", f"password={password}")
    assert places(watch) == ["an answer", "a log"]


def test_a_report_does_not_tell_the_secret_again(watch: Watch) -> None:
    watch.secret(SECRET, "a key")
    watch.saw("a log", f"made {SECRET} for you")
    (leak,) = watch.leaks()
    assert SECRET not in str(leak)
    assert leak.around == "made <the secret> for you"


@pytest.mark.parametrize("value", ["", "short", "aaaaaaaaaaaaaaaa", "000000000000"])
def test_what_comes_up_by_chance_is_no_secret(watch: Watch, value: str) -> None:
    watch.secret(value, "a password")
    watch.saw("an answer", f"{value} {value}")
    assert places(watch) == []


def test_many_secrets_and_much_text_take_seconds(watch: Watch) -> None:
    for number in range(20_000):
        watch.secret(f"gk_{hash(number * 7919):032x}{number:08d}abc", "a key")
    for _ in range(64):
        watch.saw("an answer", os.urandom(192 * 1024).hex())
    watch.saw("a log", f"gk_{hash(17 * 7919):032x}{17:08d}abc")
    assert places(watch) == ["a log"]


#: A suite of its own, over the real platform, in which an administrator puts a new key where everybody reads it.
LEAKING = """
from tests.conftest import home, platform, settings, suite_home, tenant

async def test_a_key_goes_where_it_should_not(platform, tenant):
    key = await platform.new_key(tenant.user)
    made = await tenant.admin.client.post("/api/admin/groups", json={"name": "x", "description": f"use {key}"})
    assert made.status_code == 201
    print("made", key)
"""


@pytest.mark.timeout(300)
async def test_a_suite_that_tells_a_secret_fails_and_says_where(tmp_path: Path) -> None:
    test = tmp_path / "test_leaking.py"
    test.write_text(LEAKING)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT,
        "-p", "tests.support.leak_plugin", test,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    told = output.decode()
    # The test itself passes: it is the suite that does not.
    assert (process.returncode, "1 failed" in told) == (1, False), told
    summary = told.partition("secrets that were told")[2]
    for place in ("answer of POST /api/admin/groups", "table groups", "Captured stdout call"):
        assert place in summary
    # In what it says around the key there is none; the test in its answer to the creation is not a leak.
    assert "gk_" not in summary.replace("a minted gk_", "")
    assert "answer of POST /api/auth/api-keys" not in summary
