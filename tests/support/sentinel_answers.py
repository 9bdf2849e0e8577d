"""Answers of the providers' dialects, whole and streamed, in which each value is unique. `PARTS` has the names of the
parts that no client's dialect expresses, by their value."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.sse import frame

#: the name of the lost part by the sentinel in it
PARTS = {
    "snt-annotation": "answer.citations",
    "snt-search": "answer.citations",
    "snt-image": "answer.images",
    "snt-audio": "answer.audio",
    "snt-detail": "answer.reasoning_details",
    "snt-legacy": "answer.function_call",
    "snt-logprob": "answer.logprobs",
    "snt-reference": "answer.reference",
    "snt-code": "answer.code",
    "snt-finish": "answer.finish_message",
    "snt-stop-details": "answer.stop_details",
    "snt-hosted": "answer.server_tool_use",
    "snt-video": "answer.video",
    "snt-document": "answer.document",
    "snt-result": "answer.tool_result",
    "snt-thought": "answer.reasoning",
}
CALL_ID = "snt-call"
REFUSAL = "snt-refusal"
CITED = "snt-cited"
PROMPT_TOKENS, CACHED_TOKENS, WRITTEN_TOKENS, OUTPUT_TOKENS, REASONING_TOKENS = 70_001, 3_007, 5_003, 40_009, 2_003

_OPENAI_USAGE = {
    "prompt_tokens": PROMPT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
    "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    "completion_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
}  # fmt: skip
_CHAT_FIELDS: dict[str, Any] = {
    "refusal": REFUSAL,
    "reasoning_content": "snt-thought",
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "snt-detail"}],
    "annotations": [{"type": "url_citation", "url_citation": {"url": "snt-annotation"}}],
    "images": [{"type": "image_url", "image_url": {"url": "snt-image"}}],
    "audio": {"id": "snt-audio"},
    "function_call": {"name": "snt-legacy", "arguments": "{}"},
    "tool_calls": [{
        "index": 0, "id": CALL_ID, "type": "function",
        "function": {"name": "snt-name", "arguments": '{"a":"snt-argument"}'},
        "extra_content": {"google": {"thought_signature": "snt-signature"}},
    }],
}  # fmt: skip
_LOGPROBS = {"content": [{"token": "snt-logprob", "logprob": -0.5}]}
_CHAT = {"id": "x", "model": "m", "search_results": [{"url": "snt-search"}]}
_MISTRAL_CONTENT = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "snt-thought"}]},
    {"type": "text", "text": "snt-text"},
    {"type": "reference", "reference_ids": ["snt-reference"]},
]
_MISTRAL_FIELDS = {"content": _MISTRAL_CONTENT, "tool_calls": _CHAT_FIELDS["tool_calls"]}
_CALL_BLOCK = {"type": "tool_use", "id": CALL_ID, "name": "snt-name"}
_ANTHROPIC_STOP = {"stop_reason": "refusal", "stop_details": {"explanation": "snt-stop-details"}}
_ANTHROPIC_INPUT = {
    "input_tokens": PROMPT_TOKENS,
    "cache_read_input_tokens": CACHED_TOKENS, "cache_creation_input_tokens": WRITTEN_TOKENS,
}  # fmt: skip
_GEMINI = {
    "candidates": [{
        "content": {"parts": [
            {"text": "snt-thought", "thought": True},
            {"text": "snt-text"},
            {"inlineData": {"mimeType": "image/png", "data": "snt-image"}},
            {"fileData": {"mimeType": "audio/wav", "fileUri": "snt-audio"}},
            {"executableCode": {"language": "PYTHON", "code": "snt-code"}},
            {"functionCall": {"id": CALL_ID, "name": "snt-name", "args": {"a": "snt-argument"}},
             "thoughtSignature": "snt-signature"},
        ]},
        "finishReason": "STOP",
        "finishMessage": "snt-finish",
        "urlContextMetadata": {"urlMetadata": [{"retrievedUrl": "snt-search"}]},
        "logprobsResult": {"chosenCandidates": [{"token": "snt-logprob"}]},
    }],
    "usageMetadata": {
        "promptTokenCount": PROMPT_TOKENS, "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS - REASONING_TOKENS, "thoughtsTokenCount": REASONING_TOKENS,
    },
}  # fmt: skip
_BEDROCK_USAGE = {
    "inputTokens": PROMPT_TOKENS, "outputTokens": OUTPUT_TOKENS,
    "cacheReadInputTokens": CACHED_TOKENS, "cacheWriteInputTokens": WRITTEN_TOKENS,
}  # fmt: skip
_BEDROCK_PARTS = [
    {"image": {"source": {"bytes": "snt-image"}}},
    {"audio": {"source": {"bytes": "snt-audio"}}},
    {"video": {"source": {"bytes": "snt-video"}}},
    {"document": {"name": "snt-document"}},
    {"toolResult": {"toolUseId": "snt-result"}},
]

WHOLE: dict[str, dict[str, Any]] = {
    "openai_chat": {**_CHAT, "usage": _OPENAI_USAGE, "choices": [
        {"message": {"content": "snt-text", **_CHAT_FIELDS}, "logprobs": _LOGPROBS, "finish_reason": "tool_calls"},
    ]},
    "mistral_chat": {"id": "x", "model": "m", "usage": _OPENAI_USAGE, "choices": [
        {"message": _MISTRAL_FIELDS, "finish_reason": "tool_calls"},
    ]},
    "anthropic_messages": {
        "id": "x", "model": "m", **_ANTHROPIC_STOP, "usage": {**_ANTHROPIC_INPUT, "output_tokens": OUTPUT_TOKENS},
        "content": [
            {"type": "thinking", "thinking": "snt-thought", "signature": "snt-signature"},
            {"type": "text", "text": "snt-text", "citations": [{"url": "snt-annotation"}]},
            {"type": "server_tool_use", "id": "snt-hosted", "name": "web_search", "input": {}},
            {**_CALL_BLOCK, "input": {"a": "snt-argument"}},
        ],
    },
    "gemini_generate": _GEMINI,
    "bedrock_converse": {
        "output": {"message": {"content": [
            {"reasoningContent": {"reasoningText": {"text": "snt-thought", "signature": "snt-signature"}}},
            {"text": "snt-text"},
            {"citationsContent": {"content": [{"text": CITED}], "citations": [{"title": "snt-annotation"}]}},
            *_BEDROCK_PARTS,
            {"toolUse": {"toolUseId": CALL_ID, "name": "snt-name", "input": {"a": "snt-argument"}}},
        ]}},
        "stopReason": "tool_use",
        "usage": _BEDROCK_USAGE,
    },
}  # fmt: skip


def _started(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _piece(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def _converse(name: str, **fields: Any) -> bytes:
    return frame(msgspec.json.encode(fields), name)


def _sse(*events: dict[str, Any]) -> list[bytes]:
    return [frame(msgspec.json.encode(event), event.get("type")) for event in events]


STREAMS: dict[str, list[bytes]] = {
    "openai_chat": [
        *_sse(
            {**_CHAT, "choices": [{"delta": {"content": "snt-text", **_CHAT_FIELDS}, "logprobs": _LOGPROBS}]},
            {"id": "x", "choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
            {"id": "x", "choices": [], "usage": _OPENAI_USAGE},
        ),
        frame(b"[DONE]"),
    ],
    "mistral_chat": [
        *_sse(
            {"id": "x", "choices": [{"delta": _MISTRAL_FIELDS, "finish_reason": "tool_calls"}], "usage": _OPENAI_USAGE}
        ),
        frame(b"[DONE]"),
    ],
    "anthropic_messages": _sse(
        {"type": "message_start", "message": {"id": "x", "model": "m", "usage": _ANTHROPIC_INPUT}},
        _started(0, {"type": "thinking", "thinking": ""}),
        _piece(0, "thinking_delta", thinking="snt-thought"),
        _piece(0, "signature_delta", signature="snt-signature"),
        _started(1, {"type": "text", "text": ""}),
        _piece(1, "citations_delta", citation={"url": "snt-annotation"}),
        _piece(1, "text_delta", text="snt-text"),
        _started(2, {"type": "server_tool_use", "id": "snt-hosted", "name": "web_search", "input": {}}),
        _started(3, {**_CALL_BLOCK, "input": {}}),
        _piece(3, "input_json_delta", partial_json='{"a":"snt-argument"}'),
        {"type": "content_block_stop", "index": 3},
        {"type": "message_delta", "delta": _ANTHROPIC_STOP, "usage": {"output_tokens": OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ),
    "gemini_generate": _sse(_GEMINI),
    "bedrock_converse": [
        _converse("messageStart"),
        _converse("contentBlockDelta", delta={"reasoningContent": {"text": "snt-thought"}}),
        _converse("contentBlockDelta", delta={"reasoningContent": {"signature": "snt-signature"}}),
        _converse("contentBlockDelta", contentBlockIndex=1, delta={"text": "snt-text"}),
        _converse("contentBlockDelta", contentBlockIndex=2, delta={"text": CITED}),
        _converse("contentBlockDelta", contentBlockIndex=2, delta={"citation": {"title": "snt-annotation"}}),
        *(_converse("contentBlockStart", contentBlockIndex=3, start=part) for part in _BEDROCK_PARTS),
        _converse(
            "contentBlockStart", contentBlockIndex=4, start={"toolUse": {"toolUseId": CALL_ID, "name": "snt-name"}}
        ),
        _converse("contentBlockDelta", contentBlockIndex=4, delta={"toolUse": {"input": '{"a":"snt-argument"}'}}),
        _converse("messageStop", stopReason="tool_use"),
        _converse("metadata", usage=_BEDROCK_USAGE),
    ],
}
#: an answer that begins each block with its whole content, as some servers with Anthropic's API do
BLOCKS_IN_ONE_PIECE = _sse(
    {"type": "message_start", "message": {"id": "x", "model": "m"}},
    _started(0, {"type": "thinking", "thinking": "snt-thought"}),
    _started(1, {"type": "text", "text": "snt-text", "citations": [{"url": "snt-annotation"}]}),
    _started(2, {**_CALL_BLOCK, "input": {"a": "snt-argument"}}),
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)
