"""Runs the load with wrk on its own core, and makes single requests to check that a gateway answers."""

import http.client
import json
import os
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

SCRIPT = Path(__file__).parent.parent / "upstream" / "chat.lua"
CHUNKS = 50


class Route(StrEnum):
    """A behaviour of the mock. The value is the prefix of its path."""

    IMMEDIATE = ""
    SLOW = "/delay/60"
    GAPS = "/gap/250"
    CHUNK_PER_SECOND = "/gap/1000"


@dataclass(frozen=True)
class Target:
    """The address at which a gateway receives the requests."""

    url: str
    model: str = "gpt-4o-mini"
    headers: dict[str, str] = field(default_factory=dict)

    def body(self, *, stream: bool) -> str:
        request: dict[str, object] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": "You answer questions about the sea. Two short sentences, no lists."},
                {
                    "role": "user",
                    "content": "How does a sailor at night know which lighthouse is ahead, and what does its light "
                    "warn of? Please keep to what can be seen from the deck of a small boat.",
                },
            ],
            "temperature": 0.7,
            "max_tokens": 256,
        }
        if stream:
            request["stream"] = True
        return json.dumps(request, separators=(",", ":"))


@dataclass(frozen=True)
class Result:
    """The result of wrk. `refused` counts answers with other statuses than 2xx and 3xx. `broken` counts failed
    connections and time-outs."""

    requests: int
    seconds: float
    bytes: int
    p50_us: float
    p99_us: float
    max_us: float
    refused: int
    broken: int
    #: processor time of wrk itself, in seconds
    load_cpu: float = 0.0

    @property
    def rate(self) -> float:
        return (self.requests - self.refused) / self.seconds


class NoAnswer(Exception):
    """The gateway does not answer as expected. The message describes its answer."""


def probe(target: Target, *, stream: bool) -> None:
    """Make one request. Raises `NoAnswer` if there is no complete answer."""
    where = urlsplit(target.url)
    connection = http.client.HTTPConnection(where.netloc, timeout=60)
    try:
        headers = {"Content-Type": "application/json", **target.headers}
        connection.request("POST", where.path, target.body(stream=stream), headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise NoAnswer(f"{answer.status} {' '.join(text.split())[:200]}")
    if not stream:
        if "lighthouse" not in text:
            raise NoAnswer(f"200 without the provider's answer: {text[:200]}")
        return
    # A gateway may merge the empty first chunk with the next one, or send the usage in a separate chunk.
    events = text.count("data: {")
    if not CHUNKS - 2 <= events <= CHUNKS + 2:
        raise NoAnswer(f"200 with {events} chunks of {CHUNKS}: {text[-200:]}")


def run(
    target: Target,
    *,
    connections: int,
    seconds: float,
    core: int,
    stream: bool = False,
    pause_ms: int | None = None,
    keys: tuple[str, int] | None = None,
    meanwhile: Callable[[float], None] | None = None,
) -> Result:
    """Run the load. Each of `connections` sends its next request when the previous one is answered, or `pause_ms`
    later.

    If `keys` (a prefix and a number) is set, the API keys prefix1 to prefixN are used in turn instead of the key of the
    target. `meanwhile` is called four times per second with the seconds since the start.
    """
    env = {
        **os.environ,
        "BENCH_BODY": target.body(stream=stream),
        "BENCH_HEADERS": "\n".join(f"{name}: {value}" for name, value in target.headers.items()),
    }
    if pause_ms is not None:
        env["BENCH_PAUSE_MS"] = str(pause_ms)
    if keys is not None:
        env["BENCH_KEY_PREFIX"], env["BENCH_KEYS"] = keys[0], str(keys[1])
    size = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "60s"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    with subprocess.Popen(
        ["taskset", "-c", str(core), "wrk", *size, "-s", str(SCRIPT), target.url],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as wrk:
        while meanwhile is not None and wrk.poll() is None:
            meanwhile(time.monotonic() - started)
            time.sleep(0.25)
        output, _ = wrk.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = next((line for line in output.splitlines() if line.startswith("RESULT ")), None)
    if row is None:
        raise RuntimeError(f"wrk failed: {output.strip()}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(**json.loads(row.removeprefix("RESULT ")), load_cpu=used)
