"""The messages on the socket of the detection process, in msgpack."""

import re
from typing import Final, TypeAlias

import msgspec

from gatehouse.detection.documents.output import Reading
from gatehouse.detection.findings import Finding
from gatehouse.detection.models import TierName
from gatehouse.detection.service.tiers import Failure, TierState
from gatehouse.foundation.processes import frames

#: Name of the socket in `GATEHOUSE_HOME`.
SOCKET: Final = "detection.sock"
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
    return frames.framed(data)
