"""Acts as a gateway worker: appends records to a journal until it is killed, and prints the acknowledged ones.

python appender.py JOURNAL SYNC PARALLEL SEGMENT_BYTES
"""

import asyncio
import os
import sys
from pathlib import Path

from gatehouse.foundation.journal import JournalWriter


async def append(journal: JournalWriter, lane: int) -> None:
    for number in range(1_000_000):
        await journal.append(b'{"record":"%d-%d","filler":"%s"}' % (lane, number, b"x" * (number % 700)))
        os.write(1, b"%d-%d\n" % (lane, number))
        # Append many records, but not more than a concurrent reader can read on a busy machine.
        await asyncio.sleep(0.002)


async def main() -> None:
    directory, sync, parallel, segment_bytes = sys.argv[1:]
    journal = JournalWriter(
        Path(directory), sync="fsync" if sync == "fsync" else "write", segment_bytes=int(segment_bytes)
    )
    os.write(1, b"%b\n" % str(journal.writer_id).encode())
    await asyncio.gather(*[append(journal, lane) for lane in range(int(parallel))])


asyncio.run(main())
