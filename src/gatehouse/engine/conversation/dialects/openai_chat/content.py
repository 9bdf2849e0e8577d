"""Converts messages of chat completions to and from the internal form."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gatehouse.engine.conversation.conversion.documents import DEFAULT_NAME, data_url, document_in
from gatehouse.engine.conversation.conversion.images import from_url, to_url
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.decoding.optional_fields import word
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    Content,
    Document,
    FormMessage,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

#: a tool call's field for the extensions of one provider
_EXTRA: Final = "extra_content"
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


#: fields that are converted
_MESSAGE_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_PART_FIELDS: Final = frozenset({"type", "text", "refusal", "image_url", "file"})
_IMAGE_FIELDS: Final = frozenset({"url", "detail"})
_CALL_FIELDS: Final = frozenset({"id", "index", "type", "function", _EXTRA})
_FUNCTION_FIELDS: Final = frozenset({"name", "arguments"})


def read_messages(messages: Sequence[Mapping[str, Any]], lost: dict[str, None]) -> tuple[FormMessage, ...]:
    """Return the messages. Adds the names of fields that are left out to `lost`."""
    return tuple(_read_message(message, f"messages[{index}]", lost) for index, message in enumerate(messages))


def write_message(message: FormMessage) -> Iterator[dict[str, Any]]:
    """Yields the messages for one internal message: in this dialect each tool result is its own message."""
    contents: list[Content] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield {"role": "tool", "tool_call_id": part.call_id, "content": _joined_texts(part.content)}
            # A tool's message has only text; its images and documents follow in the user's message.
            contents.extend(item for item in part.content if not isinstance(item, Text))
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function, **signature_fields(part.signature)})
        elif not isinstance(part, Reasoning):
            contents.append(part)
    if calls:
        content = _write_message_content(message.role, contents) if contents else None
        yield {"role": message.role, "content": content, "tool_calls": calls}
    elif contents:
        yield {"role": message.role, "content": _write_message_content(message.role, contents)}


def _read_message(message: Mapping[str, Any], path: str, lost: dict[str, None]) -> FormMessage:
    role = message["role"]
    if not message.keys() <= _MESSAGE_FIELDS:
        is_result = role in {"tool", "function"}
        lost |= unread(message, _MESSAGE_FIELDS | {"name"} if is_result else _MESSAGE_FIELDS, "messages.")
    if role in {"tool", "function"}:
        call_id = message.get("tool_call_id") or message.get("name")
        if not isinstance(call_id, str):
            raise InvalidField(f"{path}.tool_call_id", f"`{path}.tool_call_id` is required.")
        content = tuple(part for part in _read_content(message, path, lost) if isinstance(part, Content))
        return FormMessage("user", (ToolResult(call_id=call_id, content=content),))
    calls = tuple(
        _read_call(call, f"{path}.tool_calls[{index}]", lost)
        for index, call in enumerate(message.get("tool_calls") or ())
    )
    return FormMessage(_ROLES[role], _read_content(message, path, lost) + calls)


def _read_content(message: Mapping[str, Any], path: str, lost: dict[str, None]) -> tuple[Part, ...]:
    content = message.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_read_part(part, f"{path}.content[{index}]", lost) for index, part in enumerate(content))


def _read_part(part: Mapping[str, Any], path: str, lost: dict[str, None]) -> Part:
    kind = word(part.get("type"))
    if not part.keys() <= _PART_FIELDS:
        lost |= unread(part, _PART_FIELDS, "messages.")
    if kind is not None and kind in {"text", "refusal"} and isinstance(part.get(kind), str):
        return Text(part[kind], refusal=kind == "refusal")
    image = part.get("image_url")
    if kind == "image_url" and isinstance(image, dict) and isinstance(image.get("url"), str):
        lost |= unread(image, _IMAGE_FIELDS, "messages.image_url.")
        return from_url(image["url"], image.get("detail"))
    if kind == "file" and isinstance(part.get("file"), dict):
        return document_in(part["file"], f"{path}.file", "messages", lost)
    raise InvalidField(path, f"`{path}`: this provider takes only parts of type `text`, `image_url` and `file`.")


def _read_call(call: Mapping[str, Any], path: str, lost: dict[str, None]) -> ToolCall:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidField(f"{path}.function", f"`{path}.function` with a `name` is required.")
    lost |= unread(call, _CALL_FIELDS, "messages.tool_calls.")
    lost |= unread(function, _FUNCTION_FIELDS, "messages.tool_calls.function.")
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        raise InvalidField(f"{path}.function.arguments", f"`{path}.function.arguments` must be a string.")
    call_id = call.get("id")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=function["name"],
        arguments=arguments,
        signature=signature_of(call),
    )


def signature_fields(signature: str | None) -> dict[str, Any]:
    """Return the field of a tool call that contains its signature in Google's endpoint for this dialect."""
    return {} if signature is None else {_EXTRA: {"google": {"thought_signature": signature}}}


def without_signatures(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body without signatures, for a provider that refuses unknown fields. Does not change the client's
    messages, because another candidate may need the signatures."""
    messages = body.get("messages") or ()
    for message in messages:
        for call in message.get("tool_calls") or ():
            if _EXTRA in call:
                return {**body, "messages": [_unsigned(message) for message in messages]}
    return body


def _unsigned(message: dict[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if not calls:
        return message
    plain = [{name: value for name, value in call.items() if name != _EXTRA} for call in calls]
    return {**message, "tool_calls": plain}


def signature_of(call: Mapping[str, Any]) -> str | None:
    extra = call.get(_EXTRA)
    google = extra.get("google") if isinstance(extra, dict) else None
    signature = google.get("thought_signature") if isinstance(google, dict) else None
    return signature if isinstance(signature, str) else None


def _write_message_content(role: Role, parts: Sequence[Content]) -> Any:
    if all(isinstance(part, Text) for part in parts):
        return _joined_texts(parts)
    if role != "user":
        raise InvalidField("messages", "`messages`: this provider takes images and documents only from the user.")
    return [_write_part(part) for part in parts]


def _joined_texts(parts: Sequence[Content]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _write_part(part: Content) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Document):
        name, data = part.name or DEFAULT_NAME, data_url(part, "messages")
        return {"type": "file", "file": {"filename": name, "file_data": data}}
    image = {"url": to_url(part)}
    if part.detail is not None:
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}
