"""Whole answers, and the parts that they share with chunks."""

import msgspec

from gatehouse.engine.conversation.answers import decoded
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Finish, Text
from gatehouse.engine.conversation.form import ToolCall as Call
from gatehouse.engine.conversation.usage import Usage

FINISH: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
}
#: The model broke down half-way.
ERROR = "error"


class MistralUsage(UsageShape, gc=False):
    #: where the details are left out
    num_cached_tokens: int | None = None


class Chunk(msgspec.Struct):
    """A part of a content. Thoughts, references and the like have no place in other dialects."""

    type: str = "text"
    text: str = ""


class Function(msgspec.Struct):
    name: str = ""
    #: text that is JSON, or the object itself
    arguments: msgspec.Raw = msgspec.Raw(b'""')

    @property
    def text(self) -> str:
        raw = bytes(self.arguments)
        return decoded(_string, raw) if raw.startswith(b'"') else raw.decode()


class ToolCall(msgspec.Struct):
    function: Function
    #: the library's word for none is `null`
    id: str | None = None
    index: int = 0


Content = str | list[Chunk] | None


class _Message(msgspec.Struct):
    content: Content = None
    tool_calls: list[ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Reply(msgspec.Struct):
    choices: list[_Choice]
    id: str = ""
    model: str = ""
    created: int = 0
    usage: MistralUsage | None = None


_reply = msgspec.json.Decoder(_Reply)
_string = msgspec.json.Decoder(str)


def text_of(content: Content) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(chunk.text for chunk in content if chunk.type == "text")


def usage_in(told: MistralUsage | None) -> Usage | None:
    usage = usage_of(told)
    if usage is not None and told is not None and told.prompt_tokens_details is None and told.num_cached_tokens:
        cached = min(max(told.num_cached_tokens, 0), usage.input_tokens)
        usage.input_tokens -= cached
        usage.cached_tokens = cached
    return usage


def read(body: bytes) -> Completion:
    reply = decoded(_reply, body)
    if not reply.choices:
        raise NotConvertible("no choices")
    choice = reply.choices[0]
    if choice.finish_reason == ERROR:
        raise NotConvertible("the model broke down")
    text = text_of(choice.message.content)
    calls = tuple(
        Call(id=call.id or "", name=call.function.name, arguments=call.function.text)
        for call in choice.message.tool_calls or ()
    )
    return Completion(
        id=reply.id,
        model=reply.model,
        created=reply.created,
        parts=((Text(text),) if text else ()) + calls,
        finish=FINISH.get(choice.finish_reason, "stop"),
        usage=usage_in(reply.usage),
    )
