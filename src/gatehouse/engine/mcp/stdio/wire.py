"""The messages between workers and the owner of the stdio servers, in msgpack."""

from typing import Final, TypeAlias

import msgspec

from gatehouse.foundation.processes import frames

#: Name of the socket in `GATEHOUSE_HOME`.
SOCKET: Final = "mcp-stdio.sock"


class _Message(msgspec.Struct, array_like=True, tag=True, gc=False):
    """A message. The worker chooses `number`, and the answer has the same number."""

    number: int


class Prepare(_Message):
    """Asks for a running server. It is started if necessary. With `is_legacy`, the server has been initialized in the
    older revision when the answer is sent."""

    organization: str
    server: str
    command: str
    #: the organization's values of variables
    environment: dict[str, str]
    #: identifies the command and the sealed values (`McpStdioRecord.definition`)
    definition: str
    #: digest of the caller; servers that are not shared run once for each
    caller: bytes
    is_legacy: bool


class Send(_Message):
    """Sends a JSON-RPC message to the server with the number `process`, which an earlier answer to this worker has
    named."""

    process: int
    body: bytes


class CancelSend(_Message):
    """Cancels the request with this number. There is no answer."""


class EndObsolete(_Message):
    """Ends the processes of the servers in `current` that have another definition. None stands for a server that was
    switched off or removed. With `is_complete`, a server that is absent was removed too, unless a worker has used it
    after `read_at`, the monotonic time at which `current` was read. There is no answer."""

    current: dict[str, str | None]
    is_complete: bool
    read_at: float


class ServerReady(_Message):
    process: int


class Answered(_Message):
    """The response, or an empty text after a notification."""

    body: bytes


class SendFailed(_Message):
    """A request failed. `reason` is a key of `upstream._SENTENCES`."""

    reason: str


Question: TypeAlias = Prepare | Send | CancelSend | EndObsolete
Reply: TypeAlias = ServerReady | Answered | SendFailed

_encode: Final = msgspec.msgpack.Encoder().encode
question: Final = msgspec.msgpack.Decoder(Question)
reply: Final = msgspec.msgpack.Decoder(Reply)


def framed(message: Question | Reply) -> bytes:
    """Return the frame of a message. Raises `frames.TooLong`."""
    return frames.framed(_encode(message))
