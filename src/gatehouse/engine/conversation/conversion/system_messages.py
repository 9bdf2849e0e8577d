"""Places system messages for providers that take them only before the conversation.

The texts of system messages before the conversation become the system prompt. The position of a later system message
has a meaning (for example "the remaining tokens: 1000"), so the message stays there, as a marked text of the user.
Moving it to the front would also change the beginning of each request, which providers cache.
"""

from collections.abc import Sequence

import msgspec

from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import FormMessage, Part, Request, Text, ToolCall, ToolResult


def has_later(messages: Sequence[FormMessage]) -> bool:
    """Return whether a system message follows another message."""
    is_later = False
    for message in messages:
        if message.role != "system":
            is_later = True
        elif is_later and message.parts:
            return True
    return False


def placed(request: Request) -> Request:
    """Return the request with system messages at its beginning only. Later ones become messages of the user. A system
    message between tool calls and their results is moved after the results, because no message may separate them."""
    if not has_later(request.messages):
        return request
    written: list[FormMessage] = []
    waiting: list[FormMessage] = []
    unanswered: set[str] = set()
    is_later = False
    for message in request.messages:
        if message.role == "system":
            if not is_later:
                written.append(message)
            elif message.parts:
                marked = FormMessage("user", tuple(_marked(part) for part in message.parts))
                (waiting if unanswered else written).append(marked)
            continue
        is_later = True
        called = {part.id for part in message.parts if isinstance(part, ToolCall)}
        answered = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        if not called and not answered:
            # Another message ends the turn, even if results are missing.
            unanswered.clear()
            written += waiting
            waiting = []
        written.append(message)
        unanswered = (unanswered | called) - answered
        if not unanswered:
            written += waiting
            waiting = []
    return msgspec.structs.replace(request, messages=(*written, *waiting))


def leading_texts(messages: Sequence[FormMessage]) -> list[str]:
    """Return the texts of the system messages of a result of `placed`. Raises `InvalidField` for files."""
    texts = []
    for message in messages:
        if message.role != "system":
            continue
        for part in message.parts:
            if not isinstance(part, Text):
                raise InvalidField(
                    "messages",
                    "`messages`: this provider takes images and documents only from the user, not in system messages."
                    " Move them to a message of the user.",
                )
            if part.text.strip():
                texts.append(part.text)
    return texts


def _marked(part: Part) -> Part:
    return Text(f"<system>\n{part.text}\n</system>") if isinstance(part, Text) else part
