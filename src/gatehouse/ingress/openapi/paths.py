"""The gateway's operations in the OpenAPI document."""

from functools import partial
from typing import Any, Final

from gatehouse.engine.records.attribution import MAX_TAGS, TAGS_HEADER
from gatehouse.ingress.models import MAX_PAGE_MODELS, MAX_SEARCH_CHARACTERS
from gatehouse.ingress.openapi.kept_responses import kept_response_paths

Operation = dict[str, Any]

_SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"api_key": []}]
_TAGS: Final = ["Gateway"]

_ECHO: Final = "Hello, Gatehouse"
_CHAT: Final = {"model": "sandbox/echo", "messages": [{"role": "user", "content": _ECHO}]}
_CHAT_EXAMPLES: Final = {
    "plain": {"summary": "One question", "value": _CHAT},
    "stream": {
        "summary": "Streamed, with its usage",
        "value": {**_CHAT, "stream": True, "stream_options": {"include_usage": True}},
    },
    "fallbacks": {
        "summary": "A second model, for when the first fails",
        "value": {**_CHAT, "model": "sandbox/status-503", "fallbacks": ["sandbox/echo"]},
    },
}
_COMPLETION: Final = {
    "id": "sandbox-3f1b2c4d5e6f708192a3b4c5",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "echo",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": _ECHO, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8},
}
_RESPOND: Final = {"model": "sandbox/echo", "input": _ECHO}
_RESPONSE: Final = {
    "id": "resp_sandbox-3f1b2c4d5e6f708192a3b4c5",
    "object": "response",
    "created_at": 1700000000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "echo",
    "output": [
        {
            "id": "msg_sandbox-3f1b2c4d5e6f708192a3b4c5_0",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": _ECHO, "annotations": [], "logprobs": []}],
        }
    ],
    "usage": {
        "input_tokens": 4,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    },
}
_COMPACTION: Final = {
    "id": "resp_1",
    "object": "response.compaction",
    "created_at": 1700000000,
    "output": [{"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAABo"}],
    "usage": _RESPONSE["usage"],
}
_MESSAGES: Final = {
    "model": "sandbox/echo",
    "max_tokens": 256,
    "messages": [{"role": "user", "content": _ECHO}],
}
_MESSAGE: Final = {
    "id": "sandbox-3f1b2c4d5e6f708192a3b4c5",
    "type": "message",
    "role": "assistant",
    "model": "echo",
    "content": [{"type": "text", "text": _ECHO}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 4, "output_tokens": 4},
}
_COUNT: Final = {"input_tokens": 14}
_EMBED: Final = {"model": "sandbox/embed", "input": ["a text", "another"]}
_EMBEDDINGS: Final = {
    "object": "list",
    "model": "embed",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.12, -0.34]}],
    "usage": {"prompt_tokens": 4, "total_tokens": 4},
}
_SCAN: Final = {"text": "My card is 4242 4242 4242 4242.", "model": "sandbox/echo"}
_SCANNED: Final = {
    "action": "REDACT",
    "findings": [
        {
            "entity_type": "credit_card",
            "start": 11,
            "end": 30,
            "score": 1.0,
            "rule_id": "credit-card",
            "detector_type": "regex",
            "action_tier": "redact",
        }
    ],
    "redacted_text": "My card is [CREDIT_CARD_1].",
    "content_filter": None,
    "policy": {"action": "ALLOW", "rule_id": None},
    "tiers": {
        "regex": {"ran": True, "latency_ms": 0.05},
        "ner": {"ran": False, "latency_ms": None},
        "llm": {"ran": False, "latency_ms": None},
    },
}
_MODEL: Final = {"id": "sandbox/echo", "created": 1700000000, "owned_by": "sandbox", "object": "model"}

_HEADERS: Final = {
    "X-Request-Id": "The id of the request: the id that the client sent, or a new one.",
    "X-Gateway-Provider": "The provider that answered.",
    "X-Gateway-Model": "The model that answered.",
    "X-Gateway-Fallbacks": "The number of candidates that failed before the answer.",
    "X-Gateway-Cache": "`hit` if the response cache answers, otherwise `miss`. Absent if answers are not cached.",
    "X-Gateway-Warning": "The objection of the organization's model registry to the model. Absent if there is none.",
    "X-Gateway-Dropped": "The fields that the provider's API cannot express, and the parts of its answer that the"
    " client does not receive (`answer.*`; in streams, a comment names them). Absent if there are none.",
    "X-Gateway-Token-Count": "`provider` if the provider counted the tokens, `estimate` if the gateway estimated them.",
    "X-Gateway-Timing": "The time of each step, in the form of Server-Timing. Only for administrators who send this"
    " header in the request.",
    "X-DLP-Action": "The action of DLP on the request.",
    "X-Cost-USD": "The cost of the call. Absent from streams, and if the price is unknown.",
    "X-RateLimit-Limit": "The number of requests per minute.",
    "X-RateLimit-Remaining": "The number of requests that are left.",
    "X-RateLimit-Reset": "The Unix time in seconds from which more requests are available.",
}

_CALL_HEADERS: Final = tuple(name for name in _HEADERS if name != "X-Gateway-Token-Count")

_TAGS_PARAMETER: Final = {
    "name": TAGS_HEADER,
    "in": "header",
    "required": False,
    "description": f"At most {MAX_TAGS} tags for the usage record, separated by commas; each has 1 to 64 of the"
    " characters `A-Z a-z 0-9 _ . : / = -`.",
    "schema": {"type": "string"},
    "example": "team=search,env=prod",
}

#: description of each error status on the paths that call a model
_REFUSALS: Final = {
    "400": "The body is not JSON, a field is invalid, or the provider refuses the request.",
    "401": "The credential is missing, wrong, expired or revoked.",
    "403": "The credential lacks the scope, or the address of the client is not on the organization's allowlist.",
    "404": "The model does not exist, or the caller may not use it.",
    "408": "The body took longer than `BODY_TIMEOUT_SECONDS`.",
    "413": "The body is larger than `MAX_REQUEST_BYTES`.",
    "429": "The rate limit is reached. `Retry-After` is the number of seconds after which to try again.",
    "500": "An internal error of the gateway.",
    "502": "No provider could answer. `attempts` lists the attempts. `Retry-After` is the number of seconds after which"
    " to try again.",
    "503": "The model or its provider is switched off, the platform is in maintenance, too many calls are in progress,"
    " or records cannot be written.",
    "504": "The provider did not answer in time.",
}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _refusals(error: str, statuses: tuple[str, ...] = tuple(_REFUSALS)) -> dict[str, Any]:
    schemas: dict[str, Any] = {status: _ref(error) for status in statuses}
    if "503" in schemas:
        schemas["503"] = {"anyOf": [_ref(error), _ref("InMaintenance")]}
    return {
        status: {"description": _REFUSALS[status], "content": {"application/json": {"schema": schema}}}
        for status, schema in schemas.items()
    }


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in names}


def call_operation(
    operation_id: str,
    summary: str,
    description: str,
    *,
    request: str,
    examples: dict[str, Any],
    answer: str,
    example: dict[str, Any],
    error: str = "GatewayError",
    streams: bool = True,
    is_form: bool = False,
    answer_types: tuple[str, ...] = ("application/json",),
    headers: tuple[str, ...] = _CALL_HEADERS,
) -> Operation:
    content: dict[str, Any] = {media_type: {} for media_type in answer_types}
    if "application/json" in content:
        content["application/json"] = {"schema": _ref(answer), "example": example}
    if streams:
        # The events depend on the dialect, and OpenAPI 3.1 cannot describe a sequence of events.
        content["text/event-stream"] = {}
    return {
        "tags": _TAGS,
        "summary": summary,
        "description": description,
        "operationId": operation_id,
        "security": _SECURITY,
        "parameters": [_TAGS_PARAMETER],
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data" if is_form else "application/json": {
                    "schema": _ref(request),
                    "examples": examples,
                }
            },
        },
        "responses": {
            "200": {"description": "The model's answer.", "headers": _headers(*headers), "content": content},
            **_refusals(error),
        },
    }


def _chat(operation_id: str, summary: str) -> Operation:
    return call_operation(
        operation_id,
        summary,
        "Chat completions in the format of OpenAI. With `stream`, the answer consists of server-sent events and ends"
        " with `[DONE]`. A stream that is interrupted ends with an `error` event. Unknown fields are"
        " passed to the provider unchanged. For a provider with another API format, the request is converted.",
        request="ChatRequest",
        examples=_CHAT_EXAMPLES,
        answer="ChatCompletion",
        example=_COMPLETION,
    )


def _count(
    operation_id: str,
    summary: str,
    description: str,
    *,
    request: str,
    example: dict[str, Any],
    answer: dict[str, Any],
    error: str = "GatewayError",
) -> Operation:
    return call_operation(
        operation_id,
        summary,
        description,
        request=request,
        examples={"plain": {"summary": "One question", "value": example}},
        answer="TokenCount",
        example=answer,
        error=error,
        streams=False,
        headers=tuple(_HEADERS),
    )


def _read(
    operation_id: str,
    summary: str,
    description: str,
    answer: str,
    example: dict[str, Any],
    *,
    statuses: tuple[str, ...] = ("401", "403", "404", "429", "503"),
) -> Operation:
    content = {"application/json": {"schema": _ref(answer), "example": example}}
    headers = _headers("X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    return {
        "tags": _TAGS,
        "summary": summary,
        "description": description,
        "operationId": operation_id,
        "security": _SECURITY,
        "responses": {
            "200": {"description": "The request succeeded.", "headers": headers, "content": content},
            **_refusals("GatewayError", statuses),
        },
    }


_SEARCH_OF_MODELS: Final = [
    {
        "name": "search",
        "in": "query",
        "description": "Part of the id or display name. The list has the first matching models by id, and"
        " `X-Total-Count` is the number of all. Not in the format of Anthropic.",
        "schema": {"type": "string", "maxLength": MAX_SEARCH_CHARACTERS},
    },
    {
        "name": "limit",
        "in": "query",
        "description": "Maximum number of models in the list. In the format of OpenAI, it applies only with `search`.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_MODELS, "default": MAX_PAGE_MODELS},
    },
]


_SCAN_OPERATION: Final = {
    "tags": _TAGS,
    "summary": "Scan a text",
    "description": "Return the actions that content filters, DLP and policy rules would take for a text."
    " Nothing is sent to a provider. If there are findings, a DLP event is recorded without the text.",
    "operationId": "scan",
    "security": _SECURITY,
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _ref("ScanRequest"), "example": _SCAN}},
    },
    "responses": {
        "200": {
            "description": "The findings, and the actions that would be taken.",
            "headers": _headers(
                "X-Request-Id", "X-DLP-Action", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"
            ),
            "content": {"application/json": {"schema": _ref("ScanAnswer"), "example": _SCANNED}},
        },
        **_refusals("GatewayError", ("400", "401", "403", "408", "413", "429", "500", "503")),
    },
}
_LIST_MODELS: Final = {
    **_read(
        "list_usable_models",
        "List models",
        "The models that the caller may use, in the format of OpenAI, or of Anthropic if the request has the"
        " header `anthropic-version`. Models that are switched off are included.",
        "GatewayModels",
        {"object": "list", "data": [_MODEL]},
        statuses=("400", "401", "403", "404", "429", "503"),
    ),
    "parameters": _SEARCH_OF_MODELS,
}


def gateway_paths() -> dict[str, Any]:
    """Return the path items in OpenAPI 3.1. They refer to `schemas.SCHEMAS` and `schemas.SECURITY_SCHEMES`."""
    name = {
        "name": "model",
        "in": "path",
        "required": True,
        "description": "`provider/model-id`. The slash need not be encoded.",
        "schema": {"type": "string", "minLength": 1},
        "example": "sandbox/echo",
    }
    read_model = _read(
        "read_model", "Read a model", "One of the models that the caller may use.", "GatewayModel", _MODEL
    )
    return {
        "/v1/chat/completions": {"post": _chat("chat_completions", "Call a model (OpenAI chat completions)")},
        "/api/chat/completions": {
            "post": _chat("api_chat_completions", "Call a model (another path for OpenAI chat completions)")
        },
        "/v1/responses": {
            "post": call_operation(
                "responses",
                "Call a model (OpenAI responses)",
                "Responses in the format of OpenAI, streamed or not, for every chat model in the catalog. A provider"
                " with the Responses API receives the call as it is; for others it is converted. Stored responses and"
                " tools that OpenAI runs need a provider with the API and the organization's permission.",
                request="ResponsesRequest",
                examples={
                    "plain": {"summary": "One question", "value": _RESPOND},
                    "stream": {"summary": "Streamed", "value": {**_RESPOND, "stream": True}},
                },
                answer="Response",
                example=_RESPONSE,
            )
        },
        **kept_response_paths(partial(_read, statuses=tuple(_REFUSALS)), _RESPONSE),
        "/v1/responses/compact": {
            "post": call_operation(
                "compact_response",
                "Compact a conversation (OpenAI responses)",
                "Shorten a conversation to items that the model continues from. Needs a provider with the Responses"
                " API.",
                request="CompactionRequest",
                examples={"plain": {"summary": "One question", "value": _RESPOND}},
                answer="Compaction",
                example=_COMPACTION,
                streams=False,
            )
        },
        "/v1/messages": {
            "post": call_operation(
                "messages",
                "Call a model (Anthropic messages)",
                "Messages in the format of Anthropic, streamed or not, for every chat model in the catalog.",
                request="MessagesRequest",
                examples={"plain": {"summary": "One question", "value": _MESSAGES}},
                answer="AnthropicMessage",
                example=_MESSAGE,
                error="AnthropicError",
            )
        },
        "/v1/responses/input_tokens": {
            "post": _count(
                "count_response_tokens",
                "Count input tokens (OpenAI responses)",
                "The input tokens of a call, as providers with the Responses API count them, else an estimate by its"
                " size. The call passes the same checks as one that is answered, and costs nothing.",
                request="ResponsesRequest",
                example=_RESPOND,
                answer={"object": "response.input_tokens", **_COUNT},
            )
        },
        "/v1/messages/count_tokens": {
            "post": _count(
                "count_message_tokens",
                "Count input tokens (Anthropic messages)",
                "The input tokens of a call, as Anthropic's providers count them, else an estimate by its size. The"
                " call passes the same checks as one that is answered, and costs nothing.",
                request="MessagesCountRequest",
                example={name: value for name, value in _MESSAGES.items() if name != "max_tokens"},
                answer=_COUNT,
                error="AnthropicError",
            )
        },
        "/v1/embeddings": {
            "post": call_operation(
                "embeddings",
                "Embed texts",
                "Embeddings in the format of OpenAI. They are never streamed.",
                request="EmbeddingsRequest",
                examples={"two": {"summary": "Two texts", "value": _EMBED}},
                answer="Embeddings",
                example=_EMBEDDINGS,
                streams=False,
            )
        },
        "/v1/scan": {"post": _SCAN_OPERATION},
        "/v1/models": {"get": _LIST_MODELS},
        "/v1/models/{model}": {"get": {**read_model, "parameters": [name]}},
    }
