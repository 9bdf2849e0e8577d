"""Workers and the owner prove to each other that the supervisor has started them. An outpost is supervisor and worker
in one process.

Servers run as the same user, so they can open the socket, and can bind another one at its path. A check of the peer's
process alone is not enough: the kernel reports the process that has opened the connection, and a server can make this
process end and wait until a worker has its number. The key is in the memory of the supervisor. Workers are forked from
it, and the owner reads it from its standard input. It is never sent over the socket, and no file, argument or
environment variable contains it.
"""

import asyncio
import hmac
import secrets
from typing import Final

#: The key of this installation's processes. It differs after each start of the supervisor.
KEY: Final = secrets.token_bytes(32)
KEY_BYTES: Final = len(KEY)
_CHALLENGE_BYTES: Final = 32
_PROOF_BYTES: Final = 32
_TIMEOUT_SECONDS: Final = 5.0
_OWNER: Final = b"owner"
_WORKER: Final = b"worker"


class NotAuthenticated(Exception):
    """The peer does not have the key, has closed the connection, or did not answer in time."""


async def prove_owner(key: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Authenticate this owner and the worker that has connected. Raises `NotAuthenticated`."""
    challenge = await _read(reader, _CHALLENGE_BYTES)
    own = secrets.token_bytes(_CHALLENGE_BYTES)
    _write(writer, own + _proof(key, _OWNER, challenge))
    _check(await _read(reader, _PROOF_BYTES), _proof(key, _WORKER, own))


async def prove_worker(key: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Authenticate this worker and the owner to which it has connected. Raises `NotAuthenticated`."""
    own = secrets.token_bytes(_CHALLENGE_BYTES)
    _write(writer, own)
    challenge = await _read(reader, _CHALLENGE_BYTES)
    _check(await _read(reader, _PROOF_BYTES), _proof(key, _OWNER, own))
    _write(writer, _proof(key, _WORKER, challenge))


def _proof(key: bytes, role: bytes, challenge: bytes) -> bytes:
    # The role prevents that a proof is sent back to its sender.
    return hmac.digest(key, role + challenge, "sha256")


def _check(proof: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(proof, expected):
        raise NotAuthenticated


async def _read(reader: asyncio.StreamReader, size: int) -> bytes:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return await reader.readexactly(size)
    except (TimeoutError, asyncio.IncompleteReadError, OSError):
        raise NotAuthenticated from None


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    try:
        writer.write(data)
    except (OSError, RuntimeError):
        # uvloop raises RuntimeError if the connection was lost.
        raise NotAuthenticated from None
