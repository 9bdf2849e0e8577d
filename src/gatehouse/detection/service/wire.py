"""The messages on the socket of the detection process. A frame is the length in four bytes, little-endian, and a
message in msgpack."""

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

#: Name of the socket in `GATEHOUSE_HOME`.
SOCKET: Final = "detection.sock"
#: Maximum length of a message. Both sides refuse longer messages.
MAX_MESSAGE_BYTES: Final = 128 * 1024**2
_LENGTH_PREFIX_BYTES: Final = 4
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


class _Message(msgspec.Struct, array_like=True, tag=True, gc=False):
    """A message. The client chooses `number`, and the answer has the same number."""

    number: int


class AskEntities(_Message):
    """A request to the entities tier. `deadline` is a monotonic time in seconds. All processes of a machine have the
    same monotonic clock."""

    deadline: float
    texts: list[str]
    labels: tuple[str, ...]


class AskSemantic(_Message):
    deadline: float
    texts: list[str]
    labels: tuple[str, ...]


class AskDocument(_Message):
    """A request to read a file. `declared_as_text` means that the caller of the API has declared the file as text."""

    deadline: float
    data: bytes
    declared_as_text: bool


class Cancel(_Message):
    """Cancels the request with this number. There is no answer."""


class Load(_Message):
    """Loads a model before it is needed. There is no answer."""

    tier: TierName


class AskStates(_Message):
    pass


class Entities(_Message):
    """Answers for some of the texts of a request, by index. A long request is answered in parts."""

    answers: dict[int, list[Finding]]


class Semantic(_Message):
    answers: dict[int, dict[str, float]]


class Document(_Message):
    reading: Reading


class RequestFailed(_Message):
    failure: Failure


class States(_Message):
    tiers: dict[TierName, TierState]


Question: TypeAlias = AskEntities | AskSemantic | AskDocument | Cancel | Load | AskStates
Reply: TypeAlias = Entities | Semantic | Document | RequestFailed | States

_encoder: Final = msgspec.msgpack.Encoder()
question: Final = msgspec.msgpack.Decoder(Question)
reply: Final = msgspec.msgpack.Decoder(Reply)


class TooLong(Exception):
    """A message has more than `MAX_MESSAGE_BYTES` bytes."""


def framed(message: Question | Reply) -> bytes:
    """Return the frame of a message. Raises `TooLong`."""
    try:
        data = _encoder.encode(message)
    except UnicodeEncodeError:
        assert isinstance(message, AskEntities | AskSemantic)
        # A text contains a lone surrogate. It is replaced by one character, so that offsets do not change.
        data = _encoder.encode(
            msgspec.structs.replace(message, texts=[_SURROGATES.sub("\ufffd", text) for text in message.texts])
        )
    if len(data) > MAX_MESSAGE_BYTES:
        raise TooLong
    return len(data).to_bytes(_LENGTH_PREFIX_BYTES, "little") + data


async def read(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next message, or None at the end of the connection. Raises `TooLong`."""
    try:
        size = int.from_bytes(await reader.readexactly(_LENGTH_PREFIX_BYTES), "little")
        if size > MAX_MESSAGE_BYTES:
            raise TooLong
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, OSError):
        return None


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """Yield a short path of a socket. The operating system refuses paths of more than about a hundred bytes."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # On a system without /proc, the path of the home folder must be short.
        yield f"/proc/self/fd/{directory}/{path.name}" if sys.platform == "linux" else str(path)
    finally:
        os.close(directory)
