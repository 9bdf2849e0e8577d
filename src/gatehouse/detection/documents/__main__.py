"""`python -m gatehouse.detection.documents`: reads the files that `readers` sends on standard input, one at a time."""

import os
import resource
import signal
import sys
from typing import IO

import msgspec

from gatehouse.detection.documents.limits import MEMORY_BYTES
from gatehouse.detection.documents.output import Reading, Unread
from gatehouse.detection.documents.readers import LENGTH_PREFIX_BYTES, ReadRequest
from gatehouse.detection.documents.reading import read
from gatehouse.foundation.processes.children import die_with_parent


def run() -> None:
    """Read files until the input ends or the process is killed."""
    die_with_parent(signal.SIGKILL)
    # Ctrl-C is sent to all processes of a terminal, but only the parent process ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries that print to standard output must not disturb the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for limit, maximum in ((resource.RLIMIT_DATA, MEMORY_BYTES), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _, inherited = resource.getrlimit(limit)
        bound = maximum if inherited == resource.RLIM_INFINITY else min(maximum, inherited)
        resource.setrlimit(limit, (bound, bound))
    decoder = msgspec.msgpack.Decoder(ReadRequest)
    while size := int.from_bytes(sys.stdin.buffer.read(LENGTH_PREFIX_BYTES), "little"):
        request = decoder.decode(sys.stdin.buffer.read(size))
        if not _answer(request, answers):
            return


def _answer(request: ReadRequest, answers: IO[bytes]) -> bool:
    """Read one file and write the answer. Return whether this process can continue, which is false after a lack of
    memory."""
    out_of_memory = False
    try:
        reading = read(request.data, declared_as_text=request.declared_as_text)
        message = msgspec.msgpack.encode(reading)
    except MemoryError:
        out_of_memory = True
    # If a library fails, only this file is reported as unread.
    except Exception:
        message = msgspec.msgpack.encode(Reading("", (Unread("file", "broken"),)))
    if out_of_memory:
        message = msgspec.msgpack.encode(Reading("", (Unread("file", "too_large"),)))
    answers.write(len(message).to_bytes(LENGTH_PREFIX_BYTES, "little") + message)
    answers.flush()
    return not out_of_memory


run()
