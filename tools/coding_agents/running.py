"""Runs the examples on a page against a platform whose provider is a scripted model, with DLP on."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.support.upstream import Upstream
from tests.support.vendors.coding_model import CodingModel

from tools.coding_agents.clients import ORDER_FILE, Case, Client
from tools.coding_agents.pages import Block, Values, blocks, filled

CASE_TIMEOUT_SECONDS: Final = 600
#: The number that DLP redacts. It is in the order, which tools read, and in the model's last answer.
CARD: Final = "4111 1111 1111 1111"
ORDER: Final = f"Order 7 was paid with card {CARD}.\n"
REDACTED: Final = "[CREDIT_CARD_1]"
#: By language: the file to which a page's blocks are written as a program, and the command that runs it.
_PROGRAMS: Final = {
    "python": ("program.py", "python"),
    "js": ("program.mjs", "node"),
    "bash": ("program.sh", "bash", "-eu"),
}


class Result(NamedTuple):
    """The result of a case. `faults` is empty if the case has passed."""

    faults: tuple[str, ...]
    output: str


async def run_case(
    client: Client, case: Case, values: Values, server: Upstream, folder: Path, environment: Mapping[str, str]
) -> Result:
    """Run the sections of a case in an empty folder, which is also the home of the programs. `server` is the server of
    the provider. Its recorded `requests` are cleared first."""
    (folder / ORDER_FILE).write_text(ORDER)
    server.requests.clear()
    status, output = await _run(command(client, case, values, folder), folder, environment)
    faults = list(_faults(case, status, output, server))
    if client.written_file is not None and not (folder / client.written_file).exists():
        faults.append(f"{client.written_file} was not written")
    return Result(tuple(faults), output)


def command(client: Client, case: Case, values: Values, folder: Path) -> list[str]:
    """Write the files and the program of a case. Return the command that runs it."""
    program: list[Block] = []
    page = blocks(client.name)
    for section in case.sections:
        for block in (block for block in page if block.section == section):
            if block.file is None:
                program.append(block)
                continue
            path = folder / block.file.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(block.text, values), "utf-8")
    # All blocks without a file have the same language.
    (language,) = {block.language for block in program}
    name, *interpreter = _PROGRAMS[language]
    (folder / name).write_text(filled("\n".join(block.text for block in program), values), "utf-8")
    return [*interpreter, name]


async def _run(arguments: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return the exit status and the output of a command."""
    process = await asyncio.create_subprocess_exec(
        *arguments, cwd=folder, env={**environment, "HOME": str(folder), "PWD": str(folder)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), CASE_TIMEOUT_SECONDS)
    except TimeoutError:
        return 124, "timeout"
    finally:
        # Some agents leave processes behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode or 0, output.decode(errors="replace")


def _faults(case: Case, status: int, output: str, server: Upstream) -> list[str]:
    """Return the expectations that a case has not met: exit status, redacted answer, no card number at the model, tool
    result at the model, streaming."""
    bodies = [connection.body.decode() for connection in server.requests if connection.body]
    calls = [json.loads(body) for body in bodies]
    turns = [call for call in calls if _has_tools(call) == case.has_tool]
    faults = {
        f"the exit status is {status}": status != 0,
        f"{REDACTED} is not in the output": REDACTED not in output,
        "the model received the card number": any(CARD in body for body in bodies),
        f"the model did not receive {REDACTED}": not any(REDACTED in body for body in bodies),
        "the answers were not of the expected kind": {bool(call.get("stream")) for call in turns} != {case.is_streamed},
    }
    return [fault for fault, is_present in faults.items() if is_present]


def _has_tools(call: Mapping[str, Any]) -> bool:
    return bool(call.get("tools"))


def scripted(client: Client) -> CodingModel:
    """Return the model that calls the tool of a client and then answers."""
    return CodingModel(client.tool, dict(client.arguments), answer=client.answer)
