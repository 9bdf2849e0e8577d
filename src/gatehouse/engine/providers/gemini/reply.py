"""Reads Gemini's answers: a stream's events have the same format as a whole answer."""

from typing import Any, Final
from uuid import uuid4

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import AnswerPart, Completion, Finish, Reasoning, Text, ToolCall
from gatehouse.engine.conversation.usage import Usage

_FINISH_BY_REASON: Final[dict[str, Finish]] = {
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
#: Finish reasons of malformed output: there is no answer, and another attempt may give one.
_MALFORMED: Final = frozenset(
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


class _File(msgspec.Struct, rename="camel"):
    mime_type: str | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None
    inline_data: _File | None = None
    file_data: _File | None = None
    executable_code: Any = None
    code_execution_result: Any = None

    @property
    def lost(self) -> str | None:
        """The name of a part that no other dialect has."""
        file = self.inline_data or self.file_data
        if file is not None:
            return "answer.audio" if (file.mime_type or "").startswith("audio/") else "answer.images"
        return "answer.code" if self.executable_code is not None or self.code_execution_result is not None else None


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    url_context_metadata: Any = None
    logprobs_result: Any = None


class _PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class UsageShape(msgspec.Struct, rename="camel"):
    """Token counts. `prompt_token_count` includes cached tokens; `candidates_token_count` excludes thoughts."""

    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Error(msgspec.Struct):
    message: str = ""


class GeminiAnswer(msgspec.Struct, rename="camel"):
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
    def parts(self) -> list[AnswerPart]:
        """The parts of the first candidate, the only one that is requested. The dialects of clients have no equivalent
        of code and images."""
        if not self.candidates or self.candidates[0].content is None:
            return []
        parts: list[AnswerPart] = []
        for part in self.candidates[0].content.parts:
            if part.function_call is not None:
                call = part.function_call
                arguments = bytes(call.args).decode()
                call_id = call.id or f"call_{uuid4().hex}"
                parts.append(
                    ToolCall(id=call_id, name=call.name, arguments=arguments, signature=part.thought_signature)
                )
            elif part.text:
                parts.append(Reasoning(text=part.text) if part.thought else Text(part.text))
        return parts

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of what `parts` leaves out."""
        candidate = self.candidates[0] if self.candidates else None
        if candidate is None:
            return ()
        names = {} if candidate.content is None else dict.fromkeys(part.lost for part in candidate.content.parts)
        if candidate.grounding_metadata or candidate.citation_metadata or candidate.url_context_metadata:
            names["answer.citations"] = None
        if candidate.logprobs_result:
            names["answer.logprobs"] = None
        if candidate.finish_message:
            names["answer.finish_message"] = None
        return tuple(name for name in names if name is not None)

    def finish(self, *, called: bool) -> Finish | None:
        """Return the finish reason; None if the model has not stopped. `called`: the model called a tool. Gemini has no
        separate finish reason for this. Raises `NotConvertible` if the output is malformed."""
        if self.blocked:
            return "content_filter"
        reason = self.candidates[0].finish_reason if self.candidates else None
        if reason is None:
            return None
        if reason in _MALFORMED:
            raise NotConvertible(reason)
        return _FINISH_BY_REASON.get(reason, "tool_calls" if called else "stop")


answer_decoder = msgspec.json.Decoder(GeminiAnswer)


def read(body: bytes) -> Completion:
    reply = decode(answer_decoder, body)
    if not reply.candidates and not reply.blocked:
        raise NotConvertible("neither candidates nor a reason")
    parts = tuple(reply.parts)
    finish = reply.finish(called=any(isinstance(part, ToolCall) for part in parts))
    return Completion(
        id=reply.response_id or f"resp_{uuid4().hex}",
        model=reply.model_version,
        parts=parts,
        finish=finish or "stop",
        usage=usage_of(reply.usage_metadata),
        lost=reply.lost,
    )


def usage_of(usage: UsageShape | None) -> Usage | None:
    if usage is None:
        return None
    prompt = max(usage.prompt_token_count or 0, 0)
    cached = min(max(usage.cached_content_token_count or 0, 0), prompt)
    thoughts = max(usage.thoughts_token_count or 0, 0)
    return Usage(
        input_tokens=prompt - cached + max(usage.tool_use_prompt_token_count or 0, 0),
        cached_tokens=cached,
        output_tokens=max(usage.candidates_token_count or 0, 0) + thoughts,
        reasoning_tokens=thoughts,
    )
