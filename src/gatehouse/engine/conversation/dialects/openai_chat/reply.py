"""Converts complete answers of chat completions, from OpenAI and from servers with a compatible API."""

import time
from typing import Any, Final, TypeAlias

import msgspec

from gatehouse.engine.conversation.decoding.answers import UsageReader, decode
from gatehouse.engine.conversation.dialects.openai_chat.content import signature_fields, signature_of
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, read_usage, usage_fields
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import AnswerPart, Completion, Finish, Reasoning, Text, ToolCall

FINISH: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


#: finish reason of some servers for a model that failed during its answer
FAILED_FINISH_REASON: Final = "error"


class Chunk(msgspec.Struct):
    """A part of a content. Other dialects have no equivalent for references and similar parts."""

    type: str = "text"
    text: str = ""
    #: a thought: a text, or a list of parts
    thinking: Any = None


Content: TypeAlias = str | list[Chunk] | None


def _thought(thinking: Any) -> str:
    """Return the text of a thought of Mistral's models."""
    if isinstance(thinking, str):
        return thinking
    parts = thinking if isinstance(thinking, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


class Function(msgspec.Struct):
    name: str | None = None
    #: JSON text, or the object itself
    arguments: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def text(self) -> str:
        raw = bytes(self.arguments)
        return decode(_string, raw) or "" if raw.startswith((b'"', b"null")) else raw.decode()


class _ToolCall(msgspec.Struct):
    function: Function
    id: str | None = None
    extra_content: Any = None

    @property
    def signature(self) -> str | None:
        return signature_of({"extra_content": self.extra_content})


class Reasoned(msgspec.Struct):
    """A message, or a piece of one, with the fields in which compatible servers return reasoning."""

    content: Content = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    function_call: Any = None
    images: Any = None
    audio: Any = None
    annotations: Any = None

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of the parts that other dialects cannot express."""
        fields = {
            "images": self.images,
            "audio": self.audio,
            "citations": self.annotations,
            "reasoning_details": self.reasoning_details,
            "function_call": self.function_call,
        }
        names = dict.fromkeys(f"answer.{name}" for name, value in fields.items() if value)
        if isinstance(self.content, list):
            names |= dict.fromkeys(
                f"answer.{chunk.type}" for chunk in self.content if chunk.type not in {"text", "thinking"}
            )
        return tuple(names)

    @property
    def thoughts(self) -> str:
        """The text of the reasoning."""
        for text in (self.reasoning_content, self.reasoning):
            if isinstance(text, str) and text:
                return text
        chunks = self.content if isinstance(self.content, list) else ()
        return "".join(_thought(chunk.thinking) for chunk in chunks if chunk.type == "thinking")


class Cited(msgspec.Struct):
    """An answer, or a chunk of it, with the fields in which compatible servers return sources."""

    citations: Any = None
    search_results: Any = None

    def lost(self, message: Reasoned | None, logprobs: Any) -> tuple[str, ...]:
        """Return the names of the parts of the answer and its message that other dialects cannot express."""
        names = dict.fromkeys(() if message is None else message.lost)
        if self.citations or self.search_results:
            names["answer.citations"] = None
        if logprobs:
            names["answer.logprobs"] = None
        return tuple(names)


class _Message(Reasoned):
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: Any = None


class _Reply(Cited, kw_only=True):
    choices: list[_Choice]
    id: str = ""
    model: str = ""
    created: int = 0
    usage: msgspec.Raw = msgspec.Raw(b"null")


usage_in = UsageReader("choices", UsageShape)
_reply = msgspec.json.Decoder(_Reply)
_string = msgspec.json.Decoder(str | None)


def text_of(content: Content) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(chunk.text for chunk in content if chunk.type == "text")


def read(body: bytes) -> Completion:
    reply = decode(_reply, body)
    if not reply.choices:
        raise NotConvertible("no choices")
    choice = reply.choices[0]
    if choice.finish_reason == FAILED_FINISH_REASON:
        raise NotConvertible("the model broke down")
    message = choice.message
    usage, lost_usage = read_usage(reply.usage)
    parts: list[AnswerPart] = []
    if message.thoughts:
        parts.append(Reasoning(text=message.thoughts))
    contents = ((text_of(message.content), False), (message.refusal, True))
    parts += [Text(text, refusal=refusal) for text, refusal in contents if text]
    parts += [
        ToolCall(
            id=call.id or "", name=call.function.name or "", arguments=call.function.text, signature=call.signature
        )
        for call in message.tool_calls or ()
    ]
    return Completion(
        id=reply.id,
        model=reply.model,
        created=reply.created,
        parts=tuple(parts),
        finish=FINISH.get(choice.finish_reason, "stop"),
        usage=usage,
        lost=(*reply.lost(message, choice.logprobs), *lost_usage),
    )


def write(completion: Completion) -> bytes:
    texts = [part.text for part in completion.parts if isinstance(part, Text) and not part.refusal]
    refusals = [part.text for part in completion.parts if isinstance(part, Text) and part.refusal]
    calls = [part for part in completion.parts if isinstance(part, ToolCall)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        "refusal": "".join(refusals) if refusals else None,
    }
    if reasoning := "".join(part.text for part in completion.parts if isinstance(part, Reasoning)):
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **signature_fields(call.signature),
            }
            for call in calls
        ]
    body: dict[str, Any] = {
        "id": completion.id,
        "object": "chat.completion",
        "created": completion.created or int(time.time()),
        "model": completion.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": completion.finish}],
    }
    if completion.usage is not None:
        body["usage"] = usage_fields(completion.usage)
    return msgspec.json.encode(body)
