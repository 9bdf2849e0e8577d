"""The sandbox upstream as a server of its own: `gatehouse sandbox --port N`. A plain ASGI application.

OpenAI's wire at `/v1/chat/completions`, `/v1/embeddings` and `/v1/models` (and without `/v1`), Anthropic's at
`/v1/messages`.
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
    answered = await answer(scope["method"], scope["path"], body)
    headers = [(name.encode(), value.encode()) for name, value in answered.headers.items()]
    if answered.stream is None:
        headers.append((b"content-length", str(len(answered.body)).encode()))
    await send({"type": "http.response.start", "status": answered.status, "headers": headers})
    await _send_body(answered, send)


async def _send_body(answered: SandboxAnswer, send: Send) -> None:
    """Raises `CutOff` after half of a cut body: the server closes the connection, as a dying provider does."""
    if answered.stream is not None:
        async for event in answered.stream:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    elif answered.cut:
        half = answered.body[: len(answered.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        raise CutOff
    else:
        await send({"type": "http.response.body", "body": answered.body})


async def _body(receive: Receive) -> bytes | None:
    """None when the client left or sent more than anyone would."""
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
