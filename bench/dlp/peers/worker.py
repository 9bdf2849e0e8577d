"""Runs one engine in a separate process: `python -m bench.dlp.peers.worker NAME`. Each line of input and output is a
JSON document.

The first output has the `types` of the engine. The answer to `{"find": [texts]}` has the findings of each text. The
answer to `{"time": text, "seconds": s}` has the processor seconds for the text, measured for `s` seconds. The answer to
`{"once": text}` has the processor seconds of a single run. The answer to `{"rss": true}` has the memory of the process.
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

#: If the first run takes longer than this, the text is not run again.
MAX_REPEATED_RUN_SECONDS: Final = 2.0


def seconds(engine: Engine, text: str, limit: float) -> float:
    """Return the median of as many runs as fit into `limit` seconds. The first run is not counted. If it takes longer
    than `MAX_REPEATED_RUN_SECONDS`, it is the only run, and its time is returned."""
    if (first := once(engine, text)) > MAX_REPEATED_RUN_SECONDS:
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
    # Some engines print to standard output, which must not be mixed with the answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    serve(sys.argv[1], out)


if __name__ == "__main__":
    main()
