"""Measures the processor time of a call to a provider, for each carrier.

    .venv/bin/python -m bench.outbound                                # against `gatehouse sandbox`, started here
    .venv/bin/python -m bench.outbound --upstream http://127.0.0.1:9100   # or bench/upstream/mock.c

The processor time of this thread per call is measured, for plain calls and for streams of 50 chunks, with 16 calls at
the same time. The upstream runs in a separate process. The carriers take turns, and each round begins with a different
one. The minimum and the median of all rounds are printed, because other work on the machine only adds time. `pieces` is
the number of reads in which a stream arrived.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvloop

from gatehouse.foundation.outbound import Outbound, OutboundFailed, OutboundRequest
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.foundation.outbound.lean.outbound import LeanOutbound

CARRIERS: dict[str, Callable[[], Outbound]] = {"aiohttp": AiohttpOutbound, "lean": LeanOutbound}
PORT = 9188
PARALLEL_CALLS = 16
PLAIN, STREAMS = 2000, 200

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer sk-of-the-provider-0123456789"}
#: The prompt. The sandbox returns it, one word per chunk.
WORDS = " ".join(["word"] * 47)


def request(url: str, *, stream: bool) -> OutboundRequest:
    body: dict[str, object] = {"model": "sandbox/echo", "messages": [{"role": "user", "content": WORDS}]}
    if stream:
        body["stream"] = True
    return OutboundRequest(
        method="POST",
        url=f"{url}/v1/chat/completions",
        headers=HEADERS,
        body=json.dumps(body).encode(),
        first_byte_timeout=60.0,
        idle_timeout=60.0,
        before_first_byte=lambda: None,
    )


async def call(outbound: Outbound, outbound_request: OutboundRequest, *, stream: bool) -> int:
    """Make a call, and return the number of pieces in which the answer arrived."""
    reply = await outbound.send(outbound_request)
    pieces = 0
    if stream:
        async for _ in reply.chunks():
            pieces += 1
    else:
        await reply.read(1_000_000)
        pieces = 1
    await reply.close()
    assert reply.status == 200, reply.status
    return pieces


async def cost(
    outbound: Outbound, outbound_request: OutboundRequest, calls: int, *, stream: bool
) -> tuple[float, float]:
    """Return the CPU microseconds and the number of pieces per call."""
    pieces = 0

    async def some() -> None:
        nonlocal pieces
        for _ in range(calls // PARALLEL_CALLS):
            came = await call(outbound, outbound_request, stream=stream)
            pieces += came

    began = time.thread_time()
    await asyncio.gather(*[some() for _ in range(PARALLEL_CALLS)])
    spent = time.thread_time() - began
    done = calls // PARALLEL_CALLS * PARALLEL_CALLS
    return spent / done * 1e6, pieces / done


async def measure(url: str, rounds: int) -> None:
    outbounds = {name: make() for name, make in CARRIERS.items()}
    print(f"{'CPU us per call':24}{'carrier':>10}{'least':>8}{'median':>8}{'pieces':>8}")
    for stream, calls in ((False, PLAIN), (True, STREAMS)):
        outbound_request = request(url, stream=stream)
        result: dict[str, list[tuple[float, float]]] = {name: [] for name in outbounds}
        for number in range(rounds + 1):
            order = list(outbounds) if number % 2 else list(reversed(outbounds))
            for name in order:
                result[name].append(await cost(outbounds[name], outbound_request, calls, stream=stream))
        for name, item in result.items():
            # The first round opens connections.
            costs = [spent for spent, _ in item[1:]]
            kind = "stream of 50 chunks" if stream else "plain"
            pieces = item[-1][1]
            print(f"{kind:24}{name:>10}{min(costs):8.1f}{statistics.median(costs):8.1f}{pieces:8.1f}", flush=True)
    for outbound in outbounds.values():
        await outbound.close()


@asynccontextmanager
async def sandbox() -> AsyncIterator[str]:
    url = f"http://127.0.0.1:{PORT}"
    command = [sys.executable, "-m", "gatehouse", "sandbox", "--port", str(PORT)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        probe = AiohttpOutbound(1)
        async with asyncio.timeout(60):
            while True:
                try:
                    await call(probe, request(url, stream=False), stream=False)
                    break
                except OutboundFailed:
                    await asyncio.sleep(0.2)
        await probe.close()
        yield url
    finally:
        process.terminate()
        process.wait()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", help="URL of an upstream that runs already")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    if arguments.upstream:
        await measure(arguments.upstream, arguments.rounds)
        return
    async with sandbox() as url:
        await measure(url, arguments.rounds)


if __name__ == "__main__":
    uvloop.run(main())
