"""Measures how long the event loop is blocked while the engine inspects prompts, all at the same time. By default these
are ten prompts of one megabyte each.

.venv/bin/python bench/dlp/lag.py [--prompts 10] [--bytes 1000000]
"""

import argparse
import asyncio
import sys
import time

from gatehouse.engine.dlp.body import inspect_request
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.inspection import Inspection
from gatehouse.engine.dlp.tiers import DlpOptions, NoDetectors
from gatehouse.policy.dlp.compile import compile_dlp
from gatehouse.policy.governance import GovernanceRecords

PROSE = (
    "Please summarise the attached report for the leadership team; revenue grew by 12 percent in the third quarter, "
    "while costs stayed flat. Ask anna@example.com or call +1 415 555 0132 before 2026-05-04. "
)


async def measure(prompts: int, size: int) -> None:
    # Workers set the same switch interval, so that the thread that inspects a long text hands the interpreter lock to
    # the event loop quickly.
    sys.setswitchinterval(0.001)
    policy, _ = compile_dlp(GovernanceRecords(), {})
    text = (PROSE * (size // len(PROSE) + 1))[:size]
    lags: list[float] = []
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - before - 0.001)

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0.05)
    lags.clear()
    started = time.perf_counter()
    await asyncio.gather(
        *(
            inspect_request(
                {"messages": [{"role": "user", "content": text}]},
                Examiner(Inspection(policy), NoDetectors(), DlpOptions(), "input"),
            )
            for _ in range(prompts)
        )
    )
    took = time.perf_counter() - started
    done.set()
    await watcher
    lags.sort()
    print(f"{prompts} prompts of {size:,} bytes: {took:.2f} s in all")
    p50, p99, longest = (lags[position] * 1000 for position in (len(lags) // 2, int(len(lags) * 0.99), -1))
    print(f"event loop blocked: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {longest:.1f} ms (goal: under 20)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--bytes", type=int, default=1_000_000)
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.prompts, arguments.bytes))
