"""Applies a provider's quirks to the body of a call."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gatehouse.policy.catalog import LimitField, Quirks

_LIMIT_FIELDS: Final[tuple[LimitField, ...]] = ("max_tokens", "max_completion_tokens")


def apply_quirks(
    body: Mapping[str, Any], quirks: Quirks, dialect: str, client_body: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the body for a provider with these quirks, and the client's fields that the provider does not receive.
    Messages are copied before they are changed, because the call shares them."""
    fitted = dict(body)
    removed: list[str] = [name for name in quirks.removed_fields or () if fitted.pop(name, None) is not None]
    if dialect != "openai_chat":
        return fitted, removed
    if quirks.limit_field is not None:
        for name in _LIMIT_FIELDS:
            if name != quirks.limit_field and name in fitted:
                limit = fitted.pop(name)
                fitted.setdefault(quirks.limit_field, limit)
    if quirks.stream_options is False and fitted.pop("stream_options", None) is not None:
        # The gateway adds the field to streams. Then the client did not send it.
        removed += ["stream_options"] if client_body.get("stream_options") is not None else []
    if quirks.developer_role is False:
        _change_messages(fitted, lambda message: message.get("role") == "developer", _as_system)
    if quirks.message_names is False and _change_messages(fitted, *_without("name")):
        removed.append("messages.name")
    if quirks.reasoning_content is False and _change_messages(fitted, *_without("reasoning_content")):
        removed.append("messages.reasoning_content")
    return fitted, removed


def _change_messages(
    body: dict[str, Any], concerns: Callable[[dict[str, Any]], bool], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> bool:
    """Replace the messages that `concerns` selects. Return whether there are any."""
    messages = body.get("messages") or ()
    if not any(map(concerns, messages)):
        return False
    body["messages"] = [change(message) if concerns(message) else message for message in messages]
    return True


def _as_system(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "role": "system"}


def _without(
    name: str,
) -> tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any]], dict[str, Any]]]:
    return (
        lambda message: name in message,
        lambda message: {key: value for key, value in message.items() if key != name},
    )
