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


def text(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def integer(description: str = "", **more: Any) -> Schema:
    return {"type": "integer", **({"description": description} if description else {}), **more}


def or_null(schema: Schema) -> Schema:
    description = schema.pop("description", None)
    return {"anyOf": [schema, {"type": "null"}], **({"description": description} if description else {})}


def list_of(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def object_of(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Return the schema of an object. Unknown fields are allowed, because they are passed to the provider or come from
    it."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_ANY_OBJECT: Final[Schema] = {"type": "object", "additionalProperties": True}
NUMBER: Final[Schema] = {"type": "number"}

MODEL: Final = text(
    "`provider/model-id`, a bare model id if it is unique in the catalog, or `auto` for the default model.",
    minLength=1,
    maxLength=256,
    examples=["sandbox/echo"],
)
STREAM: Final = or_null({"type": "boolean", "description": "Answer as server-sent events."})
FALLBACKS: Final = or_null(
    list_of(
        text(minLength=1, maxLength=256),
        maxItems=16,
        description="Models to try, in this order, if the first model cannot answer. Only the gateway reads this.",
        examples=[["sandbox/echo"]],
    )
)
_ROLES: Final = ["system", "developer", "user", "assistant", "tool", "function"]
_CONTENT_PARTS: Final = list_of(_ANY_OBJECT)
_MESSAGES: Final = list_of(
    object_of(
        ("role", "content"),
        role=text(enum=["user", "assistant", "system"]),
        content={"anyOf": [text(), _CONTENT_PARTS]},
    ),
    minItems=1,
)

_SCAN: Final = msgspec.json.schema_components([ScanRequest, ScanAnswer], ref_template="#/components/schemas/{name}")[1]

SCHEMAS: Final[dict[str, Schema]] = {
    **_SCAN,
    "ErrorBody": object_of(
        ("message", "type"),
        message=text("A description of the error, for people."),
        type=text("The kind of error.", examples=["authentication_error"]),
        code=text("The exact error, for programs.", examples=["invalid_api_key"]),
        param=text("The field that caused the error, if there is one.", examples=["messages[0].role"]),
        tier=text("For status 429: the limit that was reached.", examples=["general"]),
        retry_after=integer("For status 429: the number of seconds after which to try again."),
        attempts=list_of(
            object_of(
                provider=text(),
                model=text(),
                status=or_null(integer("The status of the provider's response.")),
                reason=text(),
            ),
            description="If no model could answer: the attempts, in order.",
        ),
    ),
    "GatewayError": object_of(("error",), error=_ref("ErrorBody")),
    "AnthropicError": object_of(("type", "error"), type={"const": "error"}, error=_ref("ErrorBody")),
    "InMaintenance": object_of(("error", "message"), error={"const": "maintenance_mode"}, message=text()),
    "ChatMessage": object_of(
        ("role",),
        role=text(enum=_ROLES),
        content={"anyOf": [text(), _CONTENT_PARTS, {"type": "null"}], "description": "Text, or a list of parts."},
        tool_calls=or_null(list_of(_ANY_OBJECT)),
        tool_call_id=text("For the result of a tool: the id of the call that it answers."),
    ),
    "ChatRequest": object_of(
        ("model", "messages"),
        model=MODEL,
        messages=list_of(_ref("ChatMessage"), minItems=1),
        stream=STREAM,
        stream_options=or_null(
            object_of(include_usage={"type": "boolean", "description": "Send the usage as the last event."})
        ),
        tools=or_null(list_of(_ANY_OBJECT)),
        tool_choice={"anyOf": [text(), _ANY_OBJECT, {"type": "null"}]},
        response_format=or_null(dict(_ANY_OBJECT)),
        max_tokens=or_null(integer(minimum=1)),
        max_completion_tokens=or_null(integer(minimum=1)),
        temperature=or_null(dict(NUMBER)),
        top_p=or_null(dict(NUMBER)),
        n=or_null(integer(minimum=1)),
        stop={"anyOf": [text(), list_of(text()), {"type": "null"}]},
        fallbacks=FALLBACKS,
    ),
    "ChatCompletion": object_of(
        ("choices",),
        id=text(),
        object=text(examples=["chat.completion"]),
        created=integer("Unix time."),
        model=text("The model, as its provider calls it."),
        choices=list_of(
            object_of(
                index=integer(),
                message=_ref("ChatMessage"),
                finish_reason=or_null(text(examples=["stop", "length", "tool_calls", "content_filter"])),
            )
        ),
        usage=or_null(
            object_of(
                prompt_tokens=integer(),
                completion_tokens=integer(),
                total_tokens=integer(),
                prompt_tokens_details=or_null(object_of(cached_tokens=or_null(integer()))),
            )
        ),
    ),
    "ResponsesRequest": object_of(
        ("model", "input"),
        model=MODEL,
        input={
            "anyOf": [text(), list_of(_ANY_OBJECT, minItems=1)],
            "description": "Text, or the conversation's items: `message`, `function_call`, `function_call_output`,"
            " `custom_tool_call`, `custom_tool_call_output`, `additional_tools`.",
        },
        instructions=or_null(text()),
        stream=STREAM,
        tools=or_null(list_of(_ANY_OBJECT, description="Of the types `function`, `custom` and `namespace`.")),
        tool_choice={"anyOf": [text(), _ANY_OBJECT, {"type": "null"}]},
        parallel_tool_calls=or_null({"type": "boolean"}),
        text=or_null(dict(_ANY_OBJECT)),
        reasoning=or_null(object_of(effort=or_null(text("For providers that support it.")))),
        max_output_tokens=or_null(integer(minimum=1)),
        temperature=or_null(dict(NUMBER)),
        top_p=or_null(dict(NUMBER)),
        store=or_null(
            {
                "type": "boolean",
                "description": "Whether the provider stores the response. Needs a provider with the Responses API and"
                " the organization's permission. Without the permission nothing is stored.",
            }
        ),
        previous_response_id=or_null(text("The id of a stored response of the same user, which the call continues.")),
        include=or_null(list_of(text())),
        truncation=or_null(text(enum=["auto", "disabled"])),
        fallbacks=FALLBACKS,
    ),
    "Response": object_of(
        ("id", "object", "status", "output"),
        id=text(),
        object={"const": "response"},
        created_at=integer("Unix time."),
        status=text(enum=["completed", "incomplete"]),
        incomplete_details=or_null(object_of(reason=text(enum=["max_output_tokens", "content_filter"]))),
        model=text("The model, as its provider calls it."),
        output=list_of(
            _ANY_OBJECT, description="Items of type `message`, `function_call`, `custom_tool_call` and others."
        ),
        usage=or_null(
            object_of(
                input_tokens=integer(),
                input_tokens_details=object_of(cached_tokens=integer()),
                output_tokens=integer(),
                output_tokens_details=object_of(reasoning_tokens=integer()),
                total_tokens=integer(),
            )
        ),
    ),
    "ResponseDeleted": object_of(
        ("id", "object", "deleted"), id=text(), object={"const": "response"}, deleted={"type": "boolean"}
    ),
    "ResponseItems": object_of(
        ("object", "data"),
        object={"const": "list"},
        data=list_of(_ANY_OBJECT),
        first_id=or_null(text()),
        last_id=or_null(text()),
        has_more={"type": "boolean"},
    ),
    "CompactionRequest": object_of(
        ("model",),
        model=MODEL,
        input={"anyOf": [text(), list_of(_ANY_OBJECT, minItems=1), {"type": "null"}]},
        instructions=or_null(text()),
        previous_response_id=or_null(text("The id of a stored response of the same user.")),
        fallbacks=FALLBACKS,
    ),
    "Compaction": object_of(
        ("id", "object", "output"),
        id=text(),
        object={"const": "response.compaction"},
        created_at=integer("Unix time."),
        output=list_of(_ANY_OBJECT),
        usage=or_null(dict(_ANY_OBJECT)),
    ),
    "MessagesRequest": object_of(
        ("model", "messages", "max_tokens"),
        model=MODEL,
        max_tokens=integer("Maximum number of tokens to generate.", minimum=1),
        messages=_MESSAGES,
        system={"anyOf": [text(), _CONTENT_PARTS, {"type": "null"}]},
        stream=STREAM,
        tools=or_null(list_of(_ANY_OBJECT)),
        tool_choice=or_null(dict(_ANY_OBJECT)),
        metadata=or_null(dict(_ANY_OBJECT)),
        output_config=or_null(dict(_ANY_OBJECT)),
        stop_sequences=or_null(list_of(text())),
        temperature=or_null(dict(NUMBER)),
        top_p=or_null(dict(NUMBER)),
        top_k=or_null(integer()),
        fallbacks=FALLBACKS,
    ),
    "MessagesCountRequest": object_of(
        ("model", "messages"),
        model=MODEL,
        messages=_MESSAGES,
        system={"anyOf": [text(), _CONTENT_PARTS, {"type": "null"}]},
        tools=or_null(list_of(_ANY_OBJECT)),
        tool_choice=or_null(dict(_ANY_OBJECT)),
    ),
    "TokenCount": object_of(
        ("input_tokens",),
        input_tokens=integer("Tokens of the call's input."),
        object=text("Of `/v1/responses/input_tokens`.", examples=["response.input_tokens"]),
    ),
    "AnthropicMessage": object_of(
        ("content",),
        id=text(),
        type=text(examples=["message"]),
        role=text(examples=["assistant"]),
        model=text(),
        content=list_of(_ANY_OBJECT, description="Blocks of type `text`, `tool_use` and others."),
        stop_reason=or_null(text(examples=["end_turn"])),
        stop_sequence=or_null(text()),
        usage=or_null(object_of(input_tokens=or_null(integer()), output_tokens=or_null(integer()))),
    ),
    "EmbeddingsRequest": object_of(
        ("model", "input"),
        model=MODEL,
        input={
            "anyOf": [
                text(),
                list_of({"anyOf": [text(), integer(), list_of(integer())]}, minItems=1),
            ],
            "description": "A text, a list of texts, or tokens.",
        },
        encoding_format=or_null(text(enum=["float", "base64"])),
        dimensions=or_null(integer(minimum=1)),
        fallbacks=FALLBACKS,
    ),
    "Embeddings": object_of(
        ("data",),
        object=text(examples=["list"]),
        model=text(),
        data=list_of(
            object_of(
                object=text(examples=["embedding"]),
                index=integer(),
                embedding={"anyOf": [list_of(NUMBER), text("In base64.")]},
            )
        ),
        usage=or_null(object_of(prompt_tokens=integer(), total_tokens=integer())),
    ),
    "GatewayModel": object_of(
        ("id", "created", "owned_by", "object"),
        id=text("`provider/model-id`.", examples=["sandbox/echo"]),
        created=integer("Unix time at which the model was added to the catalog."),
        owned_by=text("The provider.", examples=["sandbox"]),
        object={"const": "model"},
    ),
    "GatewayModels": object_of(("data", "object"), data=list_of(_ref("GatewayModel")), object={"const": "list"}),
}
