"""The sandbox provider as a separate server: `gatehouse sandbox --port N`. It is a plain ASGI application.

It serves OpenAI's API at `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`, also without `/v1`, and Anthropic's
API at `/v1/messages`.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from gatehouse.engine.providers.sandbox.answering import CutOff, SandboxAnswer, answer

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY_BYTES = 64 * 1024 * 1024


async def sandbox_app(scope: Message, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = await _body(receive)
    if body is None:
        return
    received = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    response = await answer(scope["method"], scope["path"], body, received)
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    if response.stream is None:
        headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await _send_body(response, send)


async def _send_body(response: SandboxAnswer, send: Send) -> None:
    """Send the body of a response. If the response is to be cut off, send half of the body and raise `CutOff`, so that
    the server closes the connection like a failing provider."""
    if response.stream is not None:
        async for event in response.stream:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    elif response.cut:
        half = response.body[: len(response.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        raise CutOff
    else:
        await send({"type": "http.response.body", "body": response.body})


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request, or None if the client disconnects or sends more than `MAX_BODY_BYTES`."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(parts)
