"""Gemini's answers: a stream's events are the same objects as a whole answer."""

from typing import Final
from uuid import uuid4

import msgspec

from gatehouse.engine.conversation.answers import decoded
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import Completion, Finish, Text, ToolCall
from gatehouse.engine.conversation.usage import Usage

_FINISH: Final[dict[str, Finish]] = {
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MODEL_ARMOR": "content_filter",
}
#: The model wrote what cannot be read: there is no answer, and another attempt may bring one.
_BROKEN: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    }
)


class _FunctionCall(msgspec.Struct):
    name: str
    id: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class UsageShape(msgspec.Struct, rename="camel"):
    """`prompt_token_count` includes the cached ones; `candidates_token_count` does not include the thoughts."""

    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Error(msgspec.Struct):
    message: str = ""


class Answer(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _PromptFeedback | None = None
    usage_metadata: UsageShape | None = None
    model_version: str = ""
    response_id: str = ""
    error: _Error | None = None

    @property
    def blocked(self) -> bool:
        return self.prompt_feedback is not None and self.prompt_feedback.block_reason is not None

    @property
    def parts(self) -> list[Text | ToolCall]:
        """Of the first candidate: no more are asked for. Thoughts, code and pictures have no place in the dialects of
        clients."""
        if not self.candidates or self.candidates[0].content is None:
            return []
        parts: list[Text | ToolCall] = []
        for part in self.candidates[0].content.parts:
            if part.function_call is not None:
                call = part.function_call
                arguments = bytes(call.args).decode()
                call_id = call.id or f"call_{uuid4().hex}"
                parts.append(
                    ToolCall(id=call_id, name=call.name, arguments=arguments, signature=part.thought_signature)
                )
            elif part.text and not part.thought:
                parts.append(Text(part.text))
        return parts

    def finish(self, *, called: bool) -> Finish | None:
        """Why the model stopped, None while it has not; `called` says whether it called a tool, for which there is no
        reason of its own. Raises `NotConvertible` for an answer that came to nothing."""
        if self.blocked:
            return "content_filter"
        reason = self.candidates[0].finish_reason if self.candidates else None
        if reason is None:
            return None
        if reason in _BROKEN:
            raise NotConvertible(reason)
        return _FINISH.get(reason, "tool_calls" if called else "stop")


answer = msgspec.json.Decoder(Answer)


def read(body: bytes) -> Completion:
    told = decoded(answer, body)
    if not told.candidates and not told.blocked:
        raise NotConvertible("neither candidates nor a reason")
    parts = tuple(told.parts)
    finish = told.finish(called=any(isinstance(part, ToolCall) for part in parts))
    return Completion(
        id=told.response_id or f"resp_{uuid4().hex}",
        model=told.model_version,
        parts=parts,
        finish=finish or "stop",
        usage=usage_of(told.usage_metadata),
    )


def usage_of(told: UsageShape | None) -> Usage | None:
    if told is None:
        return None
    prompt = max(told.prompt_token_count or 0, 0)
    cached = min(max(told.cached_content_token_count or 0, 0), prompt)
    return Usage(
        input_tokens=prompt - cached + max(told.tool_use_prompt_token_count or 0, 0),
        cached_tokens=cached,
        output_tokens=max(told.candidates_token_count or 0, 0) + max(told.thoughts_token_count or 0, 0),
    )
