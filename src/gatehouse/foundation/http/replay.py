"""A body that was read before its application asks for it."""

from starlette.types import Message, Receive


def replay(body: object, receive: Receive) -> Receive:
    """What gives the whole body as one message, then what `receive` gives."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replayed() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return replayed
