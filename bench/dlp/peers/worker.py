"""One engine in a process of its own: `python -m bench.dlp.peers.worker NAME`; a line of JSON in, a line of JSON out.

First it says `types`. Then, for `{"find": [texts]}`, the findings of each; for `{"time": text, "seconds": s}` the
seconds of processor time that the text takes, measured for `s` of them; for `{"once": text}` the same, measured once;
for `{"rss": true}` its memory.
"""

import json
import logging
import os
import sys
from pathlib import Path
from statistics import median
from time import process_time
from typing import IO, Any, Final

from bench.dlp.peers.engines import ENGINES, Engine

#: A text that takes longer is not asked about again.
LONG: Final = 2.0


def seconds(engine: Engine, text: str, limit: float) -> float:
    """The median of as many times as go into `limit`, behind one that does not count."""
    if (first := once(engine, text)) > LONG:
        return first
    spent: list[float] = []
    while sum(spent) < limit:
        spent.append(once(engine, text))
    return median(spent)


def once(engine: Engine, text: str) -> float:
    began = process_time()
    engine.find(text)
    return process_time() - began


def rss_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def serve(name: str, out: IO[str]) -> None:
    engine = ENGINES[name]()

    def say(**answer: Any) -> None:
        print(json.dumps(answer), file=out, flush=True)

    say(types=list(engine.types))
    for line in sys.stdin:
        request = json.loads(line)
        if "find" in request:
            say(findings=[engine.find(text) for text in request["find"]])
        elif "time" in request:
            say(seconds=seconds(engine, request["time"], request["seconds"]))
        elif "once" in request:
            say(seconds=once(engine, request["once"]))
        else:
            say(rss_kib=rss_kib())


def main() -> None:
    # Answers alone go to the caller: some engines print.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    serve(sys.argv[1], out)


if __name__ == "__main__":
    main()
