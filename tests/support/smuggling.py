"""Requests that two consecutive servers could read differently, each followed by a request that is hidden for one of
them."""

import asyncio
import contextlib
import json
import socket

from tests.support.wire import BODY

CONTENT = json.dumps(BODY).encode()
HIDDEN = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(CONTENT), CONTENT)
)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: 5\r\n"

#: request line (with the path as PATH), the lines after Host and Authorization, and the bytes after the head
LINE = b"POST PATH HTTP/1.1\r\n"
FRAMING: dict[str, tuple[bytes, bytes, bytes]] = {
    "a length and chunks": (LINE, LENGTH + CHUNKED, b"0\r\n\r\n"),
    "chunks and a length": (LINE, CHUNKED + LENGTH, b"0\r\n\r\n"),
    "chunks and identity": (LINE, CHUNKED + b"Transfer-Encoding: identity\r\n", b"0\r\n\r\n"),
    "identity and chunks": (LINE, b"Transfer-Encoding: identity\r\n" + CHUNKED, b"0\r\n\r\n"),
    "chunks twice": (LINE, CHUNKED * 2, b"0\r\n\r\n"),
    "chunks twice in a line": (LINE, b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"),
    "another coding first": (LINE, b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
    "another coding last": (LINE, b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"),
    "an empty coding first": (LINE, b"Transfer-Encoding: ,chunked\r\n", b"0\r\n\r\n"),
    "an empty coding last": (LINE, b"Transfer-Encoding: chunked,\r\n", b"0\r\n\r\n"),
    "no coding": (LINE, b"Transfer-Encoding:\r\n", b"0\r\n\r\n"),
    "nearly chunked": (LINE, b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
    "chunked in quotes": (LINE, b'Transfer-Encoding: "chunked"\r\n', b"0\r\n\r\n"),
    "chunked with a parameter": (LINE, b"Transfer-Encoding: chunked;a=b\r\n", b"0\r\n\r\n"),
    "chunked behind a vertical tab": (LINE, b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"),
    "a space behind Transfer-Encoding": (LINE, b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n"),
    "chunks of HTTP/1.0": (b"POST PATH HTTP/1.0\r\n", CHUNKED, b"0\r\n\r\n"),
    "two lengths": (LINE, LENGTH + b"Content-Length: 6\r\n", b"hello"),
    "the same length twice": (LINE, LENGTH * 2, b"hello"),
    "a list of lengths": (LINE, b"Content-Length: 5, 5\r\n", b"hello"),
    "a plus": (LINE, b"Content-Length: +5\r\n", b"hello"),
    "a minus": (LINE, b"Content-Length: -5\r\n", b"hello"),
    "a hexadecimal length": (LINE, b"Content-Length: 0x5\r\n", b"hello"),
    "a length with an underscore": (LINE, b"Content-Length: 0_5\r\n", b"hello"),
    "a length with a space in it": (LINE, b"Content-Length: 0 5\r\n", b"hello"),
    "an empty length": (LINE, b"Content-Length:\r\n", b"hello"),
    "a length beyond 64 bits": (LINE, b"Content-Length: 18446744073709551621\r\n", b"hello"),
}
HEADS: dict[str, tuple[bytes, bytes, bytes]] = {
    "a folded line": (LINE, LENGTH + b"X-Long: a\r\n b\r\n", b"hello"),
    "a folded coding": (LINE, b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"),
    "a folded first line": (LINE + b" X-Long: a\r\n", LENGTH, b"hello"),
    "a bare LF": (LINE, LENGTH + b"X-Other: a\nTransfer-Encoding: chunked\r\n", b"hello"),
    "a bare LF behind the request line": (b"POST PATH HTTP/1.1\n", LENGTH, b"hello"),
    "a bare LF in front": (b"\n" + LINE, LENGTH, b"hello"),
    "a bare LF at the end": (LINE, LENGTH + b"\n", b"hello"),
    "a bare CR": (LINE, LENGTH + b"X-Other: a\rTransfer-Encoding: chunked\r\n", b"hello"),
    "NUL in a name": (LINE, LENGTH + b"X\0: a\r\n", b"hello"),
    "NUL in a value": (LINE, LENGTH + b"X-Other: a\0b\r\n", b"hello"),
    "another control character": (LINE, LENGTH + b"X-Other: a\x01b\r\n", b"hello"),
    "a space in a name": (LINE, LENGTH + b"X Other: a\r\n", b"hello"),
    "a space behind a name": (LINE, b"Content-Length : 5\r\n", b"hello"),
    "a tab behind a name": (LINE, b"Content-Length\t: 5\r\n", b"hello"),
    "no name": (LINE, LENGTH + b": a\r\n", b"hello"),
    "no colon": (LINE, LENGTH + b"X-Other\r\n", b"hello"),
    "a letter beyond ASCII in a name": (LINE, LENGTH + b"X-\xe9: a\r\n", b"hello"),
    "two spaces behind the method": (b"POST  PATH HTTP/1.1\r\n", LENGTH, b"hello"),
    "two spaces behind the target": (b"POST PATH  HTTP/1.1\r\n", LENGTH, b"hello"),
    "a space behind the version": (b"POST PATH HTTP/1.1 \r\n", LENGTH, b"hello"),
    "a tab in the request line": (b"POST\tPATH HTTP/1.1\r\n", LENGTH, b"hello"),
    "no version": (b"POST PATH\r\n", LENGTH, b"hello"),
    "HTTP/0.9": (b"POST PATH HTTP/0.9\r\n", LENGTH, b"hello"),
    "HTTP/1.2": (b"POST PATH HTTP/1.2\r\n", LENGTH, b"hello"),
    "HTTP/2.0": (b"POST PATH HTTP/2.0\r\n", LENGTH, b"hello"),
    "a version in small letters": (b"POST PATH http/1.1\r\n", LENGTH, b"hello"),
    "a method in small letters": (b"post PATH HTTP/1.1\r\n", LENGTH, b"hello"),
    "a tunnel": (b"CONNECT PATH HTTP/1.1\r\n", b"", b""),
    "NUL in the target": (b"POST PATH\0 HTTP/1.1\r\n", LENGTH, b"hello"),
    "a space in front": (b" " + LINE, LENGTH, b"hello"),
}
CHUNKS: dict[str, tuple[bytes, bytes, bytes]] = {
    name: (LINE, CHUNKED, body)
    for name, body in {
        "an extension": b"5;a=b\r\nhello\r\n0\r\n\r\n",
        "an extension that hides a line": b"5;\nhello\r\n0\r\n\r\n",
        "an extension of the last": b"5\r\nhello\r\n0;a=b\r\n\r\n",
        "a size with a bare LF": b"5\nhello\r\n0\r\n\r\n",
        "a size with a bare CR": b"5\rhello\r\n0\r\n\r\n",
        "a space behind a size": b"5 \r\nhello\r\n0\r\n\r\n",
        "a space in front of a size": b" 5\r\nhello\r\n0\r\n\r\n",
        "a size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
        "a size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
        "a negative size": b"-5\r\nhello\r\n0\r\n\r\n",
        "a size with an underscore": b"0_5\r\nhello\r\n0\r\n\r\n",
        "no size": b"\r\nhello\r\n0\r\n\r\n",
        "a size beyond 64 bits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
        "an endless size": b"0" * 1000 + b"5\r\nhello\r\n0\r\n\r\n",
        "more than the size": b"5\r\nhello there\r\n0\r\n\r\n",
        "no line's end behind a chunk": b"5\r\nhello0\r\n\r\n",
        "a bare LF behind a chunk": b"5\r\nhello\n0\r\n\r\n",
        "a trailer": b"5\r\nhello\r\n0\r\nContent-Length: 7\r\n\r\n",
        "a bare LF at the end": b"5\r\nhello\r\n0\r\n\n",
    }.items()
}
#: Over 64 KiB: a server that reads no longer heads would misinterpret the rest.
SIZES: dict[str, tuple[bytes, bytes, bytes]] = {
    "a long target": (b"POST PATH?" + b"a" * 70_000 + b" HTTP/1.1\r\n", LENGTH, b"hello"),
    "a long value": (LINE, LENGTH + b"X-Large: " + b"a" * 70_000 + b"\r\n", b"hello"),
    "a long name": (LINE, LENGTH + b"X-" + b"a" * 70_000 + b": a\r\n", b"hello"),
    "many fields": (LINE, LENGTH + b"X-Many: a\r\n" * 7_000, b"hello"),
    # The hidden request continues with the last field.
    "no end": (LINE, LENGTH + b"X-Large: " + b"a" * 70_000, b"X-More: "),
}
TABLE = {**FRAMING, **{f"head: {name}": item for name, item in HEADS.items()},
         **{f"chunks: {name}": item for name, item in CHUNKS.items()},
         **{f"size: {name}": item for name, item in SIZES.items()}}  # fmt: skip


def raw(path: str, key: str, line: bytes, lines: bytes, body: bytes) -> bytes:
    start = line.replace(b"PATH", path.encode())
    head = start + b"Host: x\r\nContent-Type: application/json\r\nAuthorization: Bearer KEY\r\n" + lines
    return (head + b"\r\n" + body + HIDDEN).replace(b"KEY", key.encode())


def cut(sent: bytes, size: int = 1) -> list[bytes]:
    return [sent[at : at + size] for at in range(0, len(sent), size)]


async def answer_to(url: str, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Send the pieces, and return everything that the server sends until the connection is closed or reset. A stream of
    asyncio would discard the bytes that arrived before a reset, so this function reads from a socket."""
    loop, text = asyncio.get_running_loop(), b""
    with socket.socket() as wire:
        wire.setblocking(False)
        # The pieces are sent separately.
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(60):
            await loop.sock_connect(wire, ("127.0.0.1", int(url.rpartition(":")[2])))
            with contextlib.suppress(ConnectionError):
                for piece in pieces:
                    await loop.sock_sendall(wire, piece)
                    await asyncio.sleep(pause)
            with contextlib.suppress(ConnectionError):
                while data := await loop.sock_recv(wire, 65536):
                    text += data
    return text
