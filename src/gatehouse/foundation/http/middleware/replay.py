"""Replays a request body that was already read."""

from starlette.types import Message, Receive


def replay(body: object, receive: Receive) -> Receive:
    """Returns an ASGI `receive` that returns the whole body as one message, then the messages of `receive`."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return replayed
