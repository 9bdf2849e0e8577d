"""Measures the time until a kill switch on the platform takes effect on three connected outposts.

    .venv/bin/python -m bench.outpost_switch [--switches 50]

The time begins when the operator's call is sent, and ends when an outpost first refuses the model for a client. Each
outpost is called repeatedly, and the time of a call is part of the figure. The exit status is 1 if the 99th percentile
is above the goal.
"""

import argparse
import asyncio
import sys
import time
from contextlib import ExitStack

import aiohttp
from tests.support.outpost_server import OutpostServer, Trust, chat_body
from tests.support.server import GatehouseServer

#: Maximum seconds at the 99th percentile.
GOAL = 1.0
OUTPOSTS = 3
WAIT_SECONDS = 30.0
#: interval between two calls; more frequent calls would use the processor that the outposts need
POLL_SECONDS = 0.02


async def until(session: aiohttp.ClientSession, outpost: OutpostServer, status: int) -> float:
    """Call an outpost until it answers with `status`, and return the time of this answer."""
    deadline = time.perf_counter() + WAIT_SECONDS
    while True:
        async with session.post(f"{outpost.url}/v1/chat/completions", json=chat_body("Hello")) as answer:
            await answer.read()
            now = time.perf_counter()
            if answer.status == status:
                return now
        assert now < deadline, f"an outpost still answers {answer.status}"
        await asyncio.sleep(POLL_SECONDS)


async def switch(session: aiohttp.ClientSession, server: GatehouseServer, path: str) -> float:
    """Call the kill switch, and return the seconds until the answer of the platform."""
    began = time.perf_counter()
    async with session.post(f"{server.url}/api/v1/admin/kill-switch/{path}", json={"reason": "other"}) as answer:
        assert answer.status == 200, await answer.text()
    return time.perf_counter() - began


async def measure(server: GatehouseServer, outposts: list[OutpostServer], switches: int) -> tuple[list[float], ...]:
    headers = {"Authorization": f"Bearer {server.key}"}
    delays: list[float] = []
    answered: list[float] = []
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.get(f"{server.url}/api/v1/admin/kill-switch/providers") as answer:
            providers = await answer.json()
        (echo,) = [model["id"] for provider in providers for model in provider["models"] if model["model_id"] == "echo"]
        for _ in range(switches):
            await asyncio.gather(*(until(session, outpost, 200) for outpost in outposts))
            began = time.perf_counter()
            watching = [asyncio.create_task(until(session, outpost, 503)) for outpost in outposts]
            answered.append(await switch(session, server, f"models/{echo}/disable"))
            delays += [refused_at - began for refused_at in await asyncio.gather(*watching)]
            await switch(session, server, f"models/{echo}/enable")
    return sorted(delays), sorted(answered)


def at(values: list[float], share: float) -> float:
    """Return a percentile of the values, in milliseconds."""
    return values[min(len(values) - 1, int(share * len(values)))] * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=50)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(GatehouseServer())
        trust = Trust(server)
        outposts = [stack.enter_context(OutpostServer(trust)) for _ in range(OUTPOSTS)]
        delays, answered = asyncio.run(measure(server, outposts, arguments.switches))
    median, high, most = at(delays, 0.5), at(delays, 0.99), delays[-1] * 1000
    print(f"{arguments.switches} switches, {OUTPOSTS} outposts, active after: {median:.0f} ms (median)")
    print(f"{high:.0f} ms (p99; goal {GOAL * 1000:.0f} ms), {most:.0f} ms (maximum)")
    print(f"the platform's own answer: {at(answered, 0.5):.0f} ms (median), {at(answered, 0.99):.0f} ms (p99)")
    return int(at(delays, 0.99) > GOAL * 1000)


if __name__ == "__main__":
    sys.exit(main())
