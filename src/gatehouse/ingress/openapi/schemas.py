"""JSON schemas of the request and response bodies of the gateway's paths, by name in the OpenAPI document."""

from typing import Any, Final

import msgspec

from gatehouse.engine.scan import ScanAnswer, ScanRequest

Schema = dict[str, Any]

#: the two ways to send a credential; every path that needs a credential accepts both
SECURITY_SCHEMES: Final[dict[str, Schema]] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`gk_...`), a session's access token, or an OAuth client's token.",
    },
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key (`gk_...`)."},
}


def _text(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _integer(description: str = "", **more: Any) -> Schema:
    return {"type": "integer", **({"description": description} if description else {}), **more}


def _or_null(schema: Schema) -> Schema:
    description = schema.pop("description", None)
    return {"anyOf": [schema, {"type": "null"}], **({"description": description} if description else {})}


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _object(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Return the schema of an object. Unknown fields are allowed, because they are passed to the provider or come from
    it."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_ANY_OBJECT: Final[Schema] = {"type": "object", "additionalProperties": True}
_NUMBER: Final[Schema] = {"type": "number"}

_MODEL: Final = _text(
    "`provider/model-id`, a bare model id if it is unique in the catalog, or `auto` for the default model.",
    minLength=1,
    maxLength=256,
    examples=["sandbox/echo"],
)
_STREAM: Final = _or_null({"type": "boolean", "description": "Answer as server-sent events."})
_FALLBACKS: Final = _or_null(
    _list(
        _text(minLength=1, maxLength=256),
        maxItems=16,
        description="Models to try, in this order, if the first model cannot answer. Only the gateway reads this.",
        examples=[["sandbox/echo"]],
    )
)
_ROLES: Final = ["system", "developer", "user", "assistant", "tool", "function"]
_CONTENT_PARTS: Final = _list(_ANY_OBJECT)
_MESSAGES: Final = _list(
    _object(
        ("role", "content"),
        role=_text(enum=["user", "assistant", "system"]),
        content={"anyOf": [_text(), _CONTENT_PARTS]},
    ),
    minItems=1,
)

_SCAN: Final = msgspec.json.schema_components([ScanRequest, ScanAnswer], ref_template="#/components/schemas/{name}")[1]

SCHEMAS: Final[dict[str, Schema]] = {
    **_SCAN,
    "ErrorBody": _object(
        ("message", "type"),
        message=_text("A description of the error, for people."),
        type=_text("The kind of error.", examples=["authentication_error"]),
        code=_text("The exact error, for programs.", examples=["invalid_api_key"]),
        param=_text("The field that caused the error, if there is one.", examples=["messages[0].role"]),
        tier=_text("For status 429: the limit that was reached.", examples=["general"]),
        retry_after=_integer("For status 429: the number of seconds after which to try again."),
        attempts=_list(
            _object(
                provider=_text(),
                model=_text(),
                status=_or_null(_integer("The status of the provider's response.")),
                reason=_text(),
            ),
            description="If no model could answer: the attempts, in order.",
        ),
    ),
    "GatewayError": _object(("error",), error=_ref("ErrorBody")),
    "AnthropicError": _object(("type", "error"), type={"const": "error"}, error=_ref("ErrorBody")),
    "InMaintenance": _object(("error", "message"), error={"const": "maintenance_mode"}, message=_text()),
    "ChatMessage": _object(
        ("role",),
        role=_text(enum=_ROLES),
        content={"anyOf": [_text(), _CONTENT_PARTS, {"type": "null"}], "description": "Text, or a list of parts."},
        tool_calls=_or_null(_list(_ANY_OBJECT)),
        tool_call_id=_text("For the result of a tool: the id of the call that it answers."),
    ),
    "ChatRequest": _object(
        ("model", "messages"),
        model=_MODEL,
        messages=_list(_ref("ChatMessage"), minItems=1),
        stream=_STREAM,
        stream_options=_or_null(
            _object(include_usage={"type": "boolean", "description": "Send the usage as the last event."})
        ),
        tools=_or_null(_list(_ANY_OBJECT)),
        tool_choice={"anyOf": [_text(), _ANY_OBJECT, {"type": "null"}]},
        response_format=_or_null(dict(_ANY_OBJECT)),
        max_tokens=_or_null(_integer(minimum=1)),
        max_completion_tokens=_or_null(_integer(minimum=1)),
        temperature=_or_null(dict(_NUMBER)),
        top_p=_or_null(dict(_NUMBER)),
        n=_or_null(_integer(minimum=1)),
        stop={"anyOf": [_text(), _list(_text()), {"type": "null"}]},
        fallbacks=_FALLBACKS,
    ),
    "ChatCompletion": _object(
        ("choices",),
        id=_text(),
        object=_text(examples=["chat.completion"]),
        created=_integer("Unix time."),
        model=_text("The model, as its provider calls it."),
        choices=_list(
            _object(
                index=_integer(),
                message=_ref("ChatMessage"),
                finish_reason=_or_null(_text(examples=["stop", "length", "tool_calls", "content_filter"])),
            )
        ),
        usage=_or_null(
            _object(
                prompt_tokens=_integer(),
                completion_tokens=_integer(),
                total_tokens=_integer(),
                prompt_tokens_details=_or_null(_object(cached_tokens=_or_null(_integer()))),
            )
        ),
    ),
    "ResponsesRequest": _object(
        ("model", "input"),
        model=_MODEL,
        input={
            "anyOf": [_text(), _list(_ANY_OBJECT, minItems=1)],
            "description": "Text, or the conversation's items: `message`, `function_call`, `function_call_output`,"
            " `custom_tool_call`, `custom_tool_call_output`, `additional_tools`.",
        },
        instructions=_or_null(_text()),
        stream=_STREAM,
        tools=_or_null(_list(_ANY_OBJECT, description="Of the types `function`, `custom` and `namespace`.")),
        tool_choice={"anyOf": [_text(), _ANY_OBJECT, {"type": "null"}]},
        parallel_tool_calls=_or_null({"type": "boolean"}),
        text=_or_null(dict(_ANY_OBJECT)),
        reasoning=_or_null(_object(effort=_or_null(_text("For providers that support it.")))),
        max_output_tokens=_or_null(_integer(minimum=1)),
        temperature=_or_null(dict(_NUMBER)),
        top_p=_or_null(dict(_NUMBER)),
        store=_or_null(
            {"type": "boolean", "const": False, "description": "Responses are not stored, so `true` is refused."}
        ),
        fallbacks=_FALLBACKS,
    ),
    "Response": _object(
        ("id", "object", "status", "output"),
        id=_text(),
        object={"const": "response"},
        created_at=_integer("Unix time."),
        status=_text(enum=["completed", "incomplete"]),
        incomplete_details=_or_null(_object(reason=_text(enum=["max_output_tokens", "content_filter"]))),
        model=_text("The model, as its provider calls it."),
        output=_list(_ANY_OBJECT, description="Items of type `message`, `function_call` and `custom_tool_call`."),
        usage=_or_null(
            _object(
                input_tokens=_integer(),
                input_tokens_details=_object(cached_tokens=_integer()),
                output_tokens=_integer(),
                output_tokens_details=_object(reasoning_tokens=_integer()),
                total_tokens=_integer(),
            )
        ),
    ),
    "MessagesRequest": _object(
        ("model", "messages", "max_tokens"),
        model=_MODEL,
        max_tokens=_integer("Maximum number of tokens to generate.", minimum=1),
        messages=_MESSAGES,
        system={"anyOf": [_text(), _CONTENT_PARTS, {"type": "null"}]},
        stream=_STREAM,
        tools=_or_null(_list(_ANY_OBJECT)),
        tool_choice=_or_null(dict(_ANY_OBJECT)),
        metadata=_or_null(dict(_ANY_OBJECT)),
        output_config=_or_null(dict(_ANY_OBJECT)),
        stop_sequences=_or_null(_list(_text())),
        temperature=_or_null(dict(_NUMBER)),
        top_p=_or_null(dict(_NUMBER)),
        top_k=_or_null(_integer()),
        fallbacks=_FALLBACKS,
    ),
    "MessagesCountRequest": _object(
        ("model", "messages"),
        model=_MODEL,
        messages=_MESSAGES,
        system={"anyOf": [_text(), _CONTENT_PARTS, {"type": "null"}]},
        tools=_or_null(_list(_ANY_OBJECT)),
        tool_choice=_or_null(dict(_ANY_OBJECT)),
    ),
    "TokenCount": _object(
        ("input_tokens",),
        input_tokens=_integer("Tokens of the call's input."),
        object=_text("Of `/v1/responses/input_tokens`.", examples=["response.input_tokens"]),
    ),
    "AnthropicMessage": _object(
        ("content",),
        id=_text(),
        type=_text(examples=["message"]),
        role=_text(examples=["assistant"]),
        model=_text(),
        content=_list(_ANY_OBJECT, description="Blocks of type `text`, `tool_use` and others."),
        stop_reason=_or_null(_text(examples=["end_turn"])),
        stop_sequence=_or_null(_text()),
        usage=_or_null(_object(input_tokens=_or_null(_integer()), output_tokens=_or_null(_integer()))),
    ),
    "EmbeddingsRequest": _object(
        ("model", "input"),
        model=_MODEL,
        input={
            "anyOf": [
                _text(),
                _list({"anyOf": [_text(), _integer(), _list(_integer())]}, minItems=1),
            ],
            "description": "A text, a list of texts, or tokens.",
        },
        encoding_format=_or_null(_text(enum=["float", "base64"])),
        dimensions=_or_null(_integer(minimum=1)),
        fallbacks=_FALLBACKS,
    ),
    "Embeddings": _object(
        ("data",),
        object=_text(examples=["list"]),
        model=_text(),
        data=_list(
            _object(
                object=_text(examples=["embedding"]),
                index=_integer(),
                embedding={"anyOf": [_list(_NUMBER), _text("In base64.")]},
            )
        ),
        usage=_or_null(_object(prompt_tokens=_integer(), total_tokens=_integer())),
    ),
    "GatewayModel": _object(
        ("id", "created", "owned_by", "object"),
        id=_text("`provider/model-id`.", examples=["sandbox/echo"]),
        created=_integer("Unix time at which the model was added to the catalog."),
        owned_by=_text("The provider.", examples=["sandbox"]),
        object={"const": "model"},
    ),
    "GatewayModels": _object(("data", "object"), data=_list(_ref("GatewayModel")), object={"const": "list"}),
}
