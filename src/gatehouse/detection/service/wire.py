"""What goes over the socket: four bytes of length, little endian, and a message in msgpack."""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from gatehouse.detection.documents.output import Reading
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierName
from gatehouse.detection.service.tiers import Failure, TierState

#: Below `GATEHOUSE_HOME`.
SOCKET: Final = "detection.sock"
#: A longer message has no place in memory, on either side.
MAX_MESSAGE_BYTES: Final = 128 * 1024**2
_LENGTH_PREFIX_BYTES: Final = 4
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class _Message(msgspec.Struct, array_like=True, tag=True, gc=False):
    """`number` is the asker's own, and comes back with the answer."""

    number: int


class AskEntities(_Message):
    """`deadline` is monotonic, in seconds: one machine's processes share that clock."""

    deadline: float
    texts: list[str]
    labels: tuple[str, ...]


class AskSemantic(_Message):
    deadline: float
    texts: list[str]
    labels: tuple[str, ...]


class AskDocument(_Message):
    """`is_called_text`: the client says that it is text."""

    deadline: float
    data: bytes
    is_called_text: bool


class Cancel(_Message):
    """Nobody waits for the answer to the question of this number any more. There is no answer."""


class Load(_Message):
    """Asks for a model before it is needed. There is no answer."""

    tier: TierName


class AskStates(_Message):
    pass


class Entities(_Message):
    """Of some of the texts, by their places: a long request is answered in parts."""

    answers: dict[int, list[Finding]]


class Semantic(_Message):
    answers: dict[int, dict[str, float]]


class Document(_Message):
    reading: Reading


class Failed(_Message):
    failure: Failure


class States(_Message):
    tiers: dict[TierName, TierState]


Question: TypeAlias = AskEntities | AskSemantic | AskDocument | Cancel | Load | AskStates
Reply: TypeAlias = Entities | Semantic | Document | Failed | States

_encoder: Final = msgspec.msgpack.Encoder()
question: Final = msgspec.msgpack.Decoder(Question)
reply: Final = msgspec.msgpack.Decoder(Reply)


class TooLong(Exception):
    """A message of more than `MAX_MESSAGE_BYTES` bytes."""


def framed(message: Question | Reply) -> bytes:
    """Raises `TooLong`."""
    try:
        data = _encoder.encode(message)
    except UnicodeEncodeError:
        assert isinstance(message, AskEntities | AskSemantic)
        # Half a character of UTF-16. Whatever stands in its place keeps the others' places.
        data = _encoder.encode(
            msgspec.structs.replace(message, texts=[_SURROGATES.sub("\ufffd", text) for text in message.texts])
        )
    if len(data) > MAX_MESSAGE_BYTES:
        raise TooLong
    return len(data).to_bytes(_LENGTH_PREFIX_BYTES, "little") + data


async def read(reader: asyncio.StreamReader) -> bytes | None:
    """The next message; None at the end. Raises `TooLong`."""
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH_PREFIX_BYTES), "little")
        if size > MAX_MESSAGE_BYTES:
            raise TooLong
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return None


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A name of the socket that is short enough: more than some hundred bytes the system does not take."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Where there is no /proc, the home folder's name has to be short.
        yield f"/proc/self/fd/{directory}/{path.name}" if sys.platform == "linux" else str(path)
    finally:
        os.close(directory)
