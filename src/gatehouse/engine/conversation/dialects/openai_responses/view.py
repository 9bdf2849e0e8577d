"""Finds the texts in an event. They are inspected before the event is forwarded.

A text arrives in deltas. The complete text is then repeated four times: as text, as part, as item, and in the response.
Repetitions are not inspected again. All other strings of an event are inspected as whole texts.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import (
    EventView,
    Growth,
    TextPiece,
    Unreadable,
    decode_event,
    decode_simple_event,
    whole_texts,
)

#: by the type of an item: the field that contains its text, the channel of the text, and whether the text is JSON
_ITEM_TEXTS: Final = {
    "function_call": ("arguments", "arguments", True),
    "mcp_call": ("arguments", "arguments", True),
    "custom_tool_call": ("input", "arguments", False),
    "code_interpreter_call": ("code", "code", False),
}
#: items whose names are inspected when they begin, and repeated afterwards
_NAMED: Final = frozenset({"function_call", "custom_tool_call"})
#: by the type of a part: the field that contains its text, and the channel of the text
_PART_TEXTS: Final = {
    "output_text": ("text", "text"),
    "refusal": ("refusal", "text"),
    "reasoning_text": ("text", "reasoning"),
    "summary_text": ("text", "summary"),
}
#: fields of an event without a text, besides its delta
_BARE: Final = frozenset({
    "type", "item_id", "output_index", "content_index", "summary_index", "sequence_number", "delta", "obfuscation",
})  # fmt: skip
_FINAL: Final = frozenset({"response.completed", "response.incomplete"})
_DELTA_PREFIX: Final = b"event: response.output_text.delta\ndata: "
_END: Final = b"[DONE]"


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data or data == _END:
        return None
    event_data = decode_event(data)
    try:
        return _view(event_data)
    except (KeyError, TypeError, AttributeError):
        raise Unreadable from None


class _ResponseTextDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["response.output_text.delta"]
    item_id: str
    output_index: int
    content_index: int
    delta: str
    sequence_number: int
    logprobs: tuple[()] = ()
    obfuscation: str = ""


_text_delta = msgspec.json.Decoder(_ResponseTextDelta)


def growth(event: bytes) -> Growth | None:
    """Return the growth of a message's text for an event with its next piece. None for other events."""
    delta = decode_simple_event(event, _DELTA_PREFIX, _text_delta)
    return (
        None if delta is None or not delta.delta else (f"{delta.output_index}.{delta.content_index}.text", delta.delta)
    )


def _view(event_data: dict[str, Any]) -> EventView | None:
    kind = event_data["type"]
    if kind in _DELTAS:
        delta = _DELTAS[kind]
        piece = _piece(delta.channel(event_data), event_data, "delta", json_text=delta.is_json)
        if event_data.keys() <= _BARE:
            return EventView(event_data, [piece], name=kind)
        return _with_other_texts(kind, event_data, [piece], [], altered=_without_logprobs(event_data))
    if kind in _REPETITIONS:
        repetition = _REPETITIONS[kind]
        channel = repetition.channel(event_data)
        echoes = [_piece(channel, event_data, repetition.field, json_text=repetition.is_json)]
        if "name" in event_data:
            echoes.append(_piece(_name_channel(event_data["output_index"]), event_data, "name"))
        altered = _without_logprobs(event_data)
        if event_data.keys() <= _BARE | {repetition.field, "name", "logprobs"}:
            return EventView(event_data, [], ends=(channel,), name=kind, altered=altered, echoes=echoes)
        return _with_other_texts(kind, event_data, [], echoes, ends=(channel,), altered=altered)
    match kind:
        case "response.output_item.added":
            return _view_of_new_item(event_data["output_index"], event_data["item"], event_data)
        case "response.content_part.done" | "response.reasoning_summary_part.done":
            part = event_data["part"]
            echoes = list(_texts_of_part(_part_channel(event_data), part))
            return _with_other_texts(kind, event_data, [], echoes, altered=_without_logprobs(part))
        case "response.output_item.done":
            item = event_data["item"]
            echoes = list(_texts_of_item(event_data["output_index"], item))
            return _with_other_texts(kind, event_data, [], echoes, altered=_item_without_logprobs(item))
        case kind if kind in _FINAL:
            output = event_data["response"]["output"]
            echoes = [echo for index, item in enumerate(output) for echo in _texts_of_item(index, item)]
            altered = sum(map(_item_without_logprobs, output)) > 0
            return _with_other_texts(kind, event_data, [], echoes, ends=("",), altered=altered)
    return _with_other_texts(kind, event_data, [], [])


def _view_of_new_item(index: int, item: dict[str, Any], event_data: dict[str, Any]) -> EventView:
    """Return the view of an item that begins. Its name is a text of its own, which later events repeat."""
    names = list(_names_of_call(index, item)) if item["type"] in _NAMED else []
    ends = tuple(piece.channel for piece in names)
    return _with_other_texts(event_data["type"], event_data, names, [], ends=ends)


def _with_other_texts(
    kind: str,
    event_data: dict[str, Any],
    pieces: list[TextPiece],
    echoes: list[TextPiece],
    *,
    ends: tuple[str, ...] = (),
    altered: bool = False,
) -> EventView:
    """Return the view with the remaining texts of the event."""
    known = {(id(piece.slot.holder), piece.slot.key) for piece in (*pieces, *echoes)}
    # The model name in a response is the one that the client has sent.
    known.add((id(event_data.get("response")), "model"))
    others = [
        piece for piece in whole_texts(event_data, "other") if (id(piece.slot.holder), piece.slot.key) not in known
    ]
    return EventView(event_data, pieces + others, ends=ends, name=kind, altered=altered, echoes=echoes)


def _texts_of_item(index: int, item: dict[str, Any]) -> Iterator[TextPiece]:
    """Yields the texts of a complete item that arrived in deltas."""
    kind = item["type"]
    if kind in _NAMED:
        yield from _names_of_call(index, item)
    if kind in _ITEM_TEXTS:
        field, channel, is_json = _ITEM_TEXTS[kind]
        if isinstance(item.get(field), str):
            yield _piece(f"{index}.{channel}", item, field, json_text=is_json)
    for field in ("content", "summary"):
        for position, part in enumerate(item.get(field) or ()):
            yield from _texts_of_part(f"{index}.{position}", part)


def _texts_of_part(channel: str, part: dict[str, Any]) -> Iterator[TextPiece]:
    field, text = _PART_TEXTS.get(part["type"], ("", ""))
    if field and isinstance(part.get(field), str):
        yield _piece(f"{channel}.{text}", part, field)


def _names_of_call(index: int, item: dict[str, Any]) -> Iterator[TextPiece]:
    yield _piece(_name_channel(index), item, "name")
    if isinstance(item.get("namespace"), str):
        yield _piece(f"{index}.namespace", item, "namespace")


def _piece(channel: str, holder: dict[str, Any], field: str, *, json_text: bool = False) -> TextPiece:
    text = holder[field]
    if not isinstance(text, str):
        raise Unreadable
    return TextPiece(channel, Slot(holder, field, text, json_text=json_text))


def _item_without_logprobs(item: dict[str, Any]) -> bool:
    return sum(map(_without_logprobs, item.get("content") or ())) > 0


def _without_logprobs(holder: dict[str, Any]) -> bool:
    """Removes the log probabilities, which repeat the text token by token. Returns whether there were any."""
    if not holder.get("logprobs"):
        return False
    holder["logprobs"] = []
    return True


def _part_channel(event_data: dict[str, Any]) -> str:
    number = event_data["content_index"] if "content_index" in event_data else event_data["summary_index"]
    return f"{event_data['output_index']}.{number}"


def _name_channel(index: int) -> str:
    return f"{index}.name"


def _part_text(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda event_data: f"{_part_channel(event_data)}.{name}"


def _item_text(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda event_data: f"{event_data['output_index']}.{name}"


class _Text(NamedTuple):
    """A text that arrives in deltas. `event` is the common prefix of the types of its events. `field` is the field of
    the last event that contains the whole text."""

    event: str
    channel: Callable[[dict[str, Any]], str]
    field: str
    is_json: bool = False


_TEXTS: Final = (
    _Text("response.output_text", _part_text("text"), "text"),
    _Text("response.refusal", _part_text("text"), "refusal"),
    _Text("response.reasoning_text", _part_text("reasoning"), "text"),
    _Text("response.reasoning_summary_text", _part_text("summary"), "text"),
    _Text("response.function_call_arguments", _item_text("arguments"), "arguments", is_json=True),
    _Text("response.mcp_call_arguments", _item_text("arguments"), "arguments", is_json=True),
    _Text("response.custom_tool_call_input", _item_text("arguments"), "input"),
    _Text("response.code_interpreter_call_code", _item_text("code"), "code"),
)
_DELTAS: Final = {f"{text.event}.delta": text for text in _TEXTS}
_REPETITIONS: Final = {f"{text.event}.done": text for text in _TEXTS}
