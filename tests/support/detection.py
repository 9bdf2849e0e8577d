"""The detection process with models that are controlled by the text, for tests that kill it, stop it, or limit its
memory.

`Anna met Bob`       every capitalized word is a person
`sleep 0.5`          takes this long
`spin`               never ends, and keeps the interpreter's lock
`raise`, `panic`     fails like Python code, or like a library in Rust
`exhaust`            uses up the memory
`many`               more findings than are kept
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from gatehouse.detection.findings import Finding
from gatehouse.detection.service.client import DetectionClient
from gatehouse.detection.service.process import serve
from gatehouse.detection.service.tiers import TierModels
from gatehouse.foundation import log
from gatehouse.foundation.settings import Settings

ROOT = Path(__file__).parents[2]
HUNG_SECONDS = 1.5


class Panic(BaseException):
    pass


class StandIn:
    """A recognizer and classifier. `batches` has the texts of each call."""

    entities = ("person",)
    labels = ("calls",)

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def recognize(self, texts: Sequence[str], labels: Sequence[str] = ()) -> list[list[Finding]]:
        self.batches.append(list(texts))
        configured_findings = [Finding(0, 0, label, 1.0, label) for label in labels]
        return [[*self._obey(text), *configured_findings] for text in texts]

    def classify(self, texts: Sequence[str], labels: Sequence[str]) -> list[dict[str, float]]:
        """The score of each label is the number of calls so far, divided by a thousand."""
        self.recognize(texts)
        return [dict.fromkeys(labels, len(self.batches) / 1000) for _ in texts]

    def _obey(self, text: str) -> list[Finding]:
        word, _, argument = text.partition(" ")
        match word:
            case "sleep":
                time.sleep(float(argument.split()[0]))
            case "spin":
                re.match(r"(a+)+$", "a" * 60 + "b")
            case "raise":
                raise ValueError(text)
            case "panic":
                raise Panic
            case "exhaust":
                hoard = [bytearray(2**24) for _ in range(10_000)]
                del hoard
            case "many":
                return [Finding(0, 1, "person", 1.0, "person")] * 1000
        return [Finding(*match.span(), "person", 1.0, "person") for match in re.finditer(r"\b[A-Z]\w*", text)]


def stand_ins() -> TierModels:
    return TierModels(StandIn, StandIn)


def broken() -> StandIn:
    raise ValueError("no such model")


def main() -> None:
    settings = Settings.from_environment()
    log.configure()
    models = TierModels(broken, broken) if "broken" in sys.argv else stand_ins()
    serve(settings, models, hung_seconds=HUNG_SECONDS)


class DetectionProcess:
    def __init__(self, home: Path, env: Mapping[str, str] | None = None, *arguments: str) -> None:
        self.home = home
        self.env = {**os.environ, "GATEHOUSE_HOME": str(home), **(env or {})}
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        code = "from tests.support.detection import main; main()"
        with (self.home / "detection.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *self.arguments], env=self.env, cwd=ROOT, stderr=log
            )

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait until the process has ended by itself, and return its exit status."""
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, 15)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def log(self) -> str:
        return (self.home / "detection.log").read_text(errors="replace")


@asynccontextmanager
async def detecting(
    home: Path, *arguments: str, budget: float = 5.0, queue: int = 100, **env: str
) -> AsyncIterator[tuple[DetectionProcess, DetectionClient]]:
    """Yield the process and a connected client."""
    process = DetectionProcess(home, {"DETECTION_QUEUE": str(queue), **env}, *arguments)
    client = DetectionClient(home, budget=budget, queue=queue)
    try:
        process.start()
        await client.start()
        client.want()
        await reached(client)
        yield process, client
    finally:
        await client.stop()
        process.close()


async def reached(client: DetectionClient) -> None:
    async with asyncio.timeout(60):
        while (await client.health())["ner"].waiting is None:
            await asyncio.sleep(0.01)


@contextlib.contextmanager
def stopped(process: DetectionProcess):
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)
