"""Where a request's time goes inside the gateway: medians of what `X-Gateway-Timing` tells an administrator.

    bench/stages.py http://127.0.0.1:8000 KEY --model sandbox/echo --requests 2000

KEY is an administrator's API key. One connection, one request after the other, so that nothing waits for anything.
"""

import argparse
import asyncio
from collections import defaultdict
from statistics import median, quantiles
from typing import Any, Final

import aiohttp

#: About a kilobyte of prose.
_PROSE: Final = (
    "The committee met on a rainy morning and went through the plans for the new library, page by page, until the "
    "architect lost patience with the questions about the colour of the doors. "
)


async def measured(url: str, key: str, model: str, requests: int, size: int) -> dict[str, list[float]]:
    text = (_PROSE * (size // len(_PROSE) + 1))[:size]
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": f"Bearer {key}", "X-Gateway-Timing": "1"}
    told: dict[str, list[float]] = defaultdict(list)
    async with aiohttp.ClientSession(headers=headers) as session:
        for number in range(requests + requests // 10):
            async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                answer.raise_for_status()
                await answer.read()
                if number < requests // 10:
                    continue
                for part in answer.headers["X-Gateway-Timing"].split(", "):
                    name, _, took = part.partition(";dur=")
                    told[name].append(float(took) * 1000)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("key", help="an administrator's API key")
    parser.add_argument("--model", default="sandbox/echo")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=1000, help="length of the message")
    asked = parser.parse_args()
    told = asyncio.run(measured(asked.url, asked.key, asked.model, asked.requests, asked.bytes))
    print(f"{'part':10} {'median us':>10} {'p95 us':>10}")
    for name, spent in told.items():
        print(f"{name:10} {median(spent):10.0f} {quantiles(spent, n=20)[-1]:10.0f}")


if __name__ == "__main__":
    main()
