"""Converts requests of chat completions to and from the internal form."""

from collections.abc import Mapping
from typing import Any, Final

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.conversion.users import lost_user, short_user
from gatehouse.engine.conversation.decoding.optional_fields import (
    boolean,
    integer,
    number,
    text,
    texts,
)
from gatehouse.engine.conversation.dialects.openai_chat import content
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import Request, ResponseFormat, Sampling, Tool, ToolChoice

#: fields that are converted, or do not concern the provider
_CONVERTED_FIELDS: Final = frozenset(
    {
        "frequency_penalty", "max_completion_tokens", "max_tokens", "messages", "model", "n", "parallel_tool_calls",
        "presence_penalty", "prompt_cache_key", "reasoning_effort", "response_format", "seed", "stop", "stream",
        "stream_options", "temperature", "tool_choice", "tools", "top_k", "top_p", "user",
    }
)  # fmt: skip
#: fields of this dialect; other fields are extensions of a provider
DIALECT_FIELDS: Final = frozenset(
    {
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
        "max_tokens", "messages", "metadata", "modalities", "model", "moderation", "n", "parallel_tool_calls",
        "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort",
        "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
        "temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
        "web_search_options",
    }
)  # fmt: skip


_TOOL_FIELDS: Final = frozenset({"type", "function"})
_FUNCTION_FIELDS: Final = frozenset({"name", "description", "parameters", "strict"})
_SCHEMA_FIELDS: Final = frozenset({"name", "description", "schema", "strict"})
#: OpenAI's limit for `user`
MAX_USER_CHARACTERS: Final = 64
_UNWRITTEN: Final = frozenset({"top_k", "is_error", "reasoning", "returned_reasoning", "betas"})


def wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options") or {}
    return options.get("include_usage") is True


def refuse_unconvertible(body: Mapping[str, Any]) -> None:
    """Raises `InvalidField` for fields that cannot be converted and cannot be left out, because that would change the
    meaning of the answer."""
    choices = integer(body, "n")
    if choices is not None and choices > 1:
        raise InvalidField("n", "`n` must be 1: this provider gives one answer to a call.")
    for field in ("functions", "function_call"):
        if body.get(field) not in (None, [], "none", "auto"):
            raise InvalidField(field, f"`{field}` is not converted for this provider: use `tools` and `tool_choice`.")
    for index, message in enumerate(body["messages"]):
        if message.get("function_call"):
            path = f"messages[{index}].function_call"
            raise InvalidField(path, f"`{path}` is not converted for this provider: use `tool_calls`.")


def read(body: Mapping[str, Any], model: str, stream: bool) -> Request:
    # Fields that this dialect does not define are in `extra`.
    lost = unread(body, _CONVERTED_FIELDS | (body.keys() - DIALECT_FIELDS))
    tools = tuple(_read_tool(tool, f"tools[{index}]", lost) for index, tool in enumerate(body.get("tools") or ()))
    requested_effort = effort.of_openai(text(body, "reasoning_effort"), "reasoning_effort")
    return Request(
        model=model,
        stream=stream,
        messages=content.read_messages(body["messages"], lost),
        tools=tools,
        tool_choice=_read_choice(body.get("tool_choice")),
        parallel_tool_calls=boolean(body, "parallel_tool_calls"),
        response_format=_read_format(body.get("response_format"), lost),
        user=text(body, "user"),
        effort=requested_effort,
        shows_reasoning=requested_effort is not None and requested_effort.level != "none",
        prompt_cache_key=text(body, "prompt_cache_key"),
        extra={name: value for name, value in body.items() if name not in DIALECT_FIELDS},
        sampling=Sampling(
            max_tokens=integer(body, "max_completion_tokens") or integer(body, "max_tokens"),
            temperature=number(body, "temperature"),
            top_p=number(body, "top_p"),
            top_k=integer(body, "top_k"),
            seed=integer(body, "seed"),
            frequency_penalty=number(body, "frequency_penalty"),
            presence_penalty=number(body, "presence_penalty"),
            stop=texts(body, "stop"),
        ),
        lost=tuple(lost),
    )


def prepend_instructions(body: dict[str, Any], text_: str) -> None:
    """Puts the text before the content of a first system message, or inserts a system message."""
    first = body["messages"][0]
    content = first.get("content")
    if first["role"] in {"system", "developer"} and isinstance(content, str | list):
        parts = [{"type": "text", "text": text_}]
        first["content"] = f"{text_}\n\n{content}" if isinstance(content, str) else parts + content
    else:
        body["messages"].insert(0, {"role": "system", "content": text_})


def write(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [written for message in request.messages for written in content.write_message(message)],
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "stop": list(sampling.stop) or None,
        "tools": [_write_tool(tool) for tool in request.tools] or None,
        "tool_choice": _write_choice(request.tool_choice),
        "parallel_tool_calls": request.parallel_tool_calls if request.tools else None,
        "response_format": write_format(request.response_format),
        "user": None if request.user is None else short_user(request.user, MAX_USER_CHARACTERS),
        "reasoning_effort": effort.for_openai(request.effort, request.model, request.reasons),
        "prompt_cache_key": request.prompt_cache_key,
        "stream": request.stream or None,
        "stream_options": {"include_usage": True} if request.stream else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def unwritten(request: Request) -> frozenset[str]:
    """Return the features of a request that `write` leaves out or changes."""
    level = effort.for_openai(request.effort, request.model, request.reasons)
    return _UNWRITTEN | effort.unwritten_levels(request.effort, level) | lost_user(request.user, MAX_USER_CHARACTERS)


def _read_tool(tool: Mapping[str, Any], path: str, lost: dict[str, None]) -> Tool:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict):
        raise InvalidField(path, f"`{path}`: this provider takes only tools of type `function`.")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not name:
        raise InvalidField(f"{path}.function.name", f"`{path}.function.name` is required.")
    if parameters is not None and not isinstance(parameters, dict):
        raise InvalidField(f"{path}.function.parameters", f"`{path}.function.parameters` must be an object.")
    lost |= unread(tool, _TOOL_FIELDS, "tools.") | unread(function, _FUNCTION_FIELDS, "tools.")
    return Tool(
        name=name,
        description=text(function, "description"),
        parameters=parameters,
        strict=boolean(function, "strict"),
    )


def _write_tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _read_choice(choice: Any) -> ToolChoice | None:
    if choice is None:
        return None
    if choice in ("auto", "none", "required"):
        return ToolChoice(choice)
    function = choice.get("function") if isinstance(choice, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        return ToolChoice("named", function["name"])
    raise InvalidField("tool_choice", "`tool_choice` must be `auto`, `none`, `required` or name a function.")


def _write_choice(choice: ToolChoice | None) -> Any:
    if choice is None:
        return None
    if choice.mode == "named":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _read_format(value: Any, lost: dict[str, None]) -> ResponseFormat | None:
    if value is None or value.get("type") == "text":
        return None
    if value.get("type") == "json_object":
        return ResponseFormat(kind="json_object")
    schema = value.get("json_schema")
    if value.get("type") != "json_schema" or not isinstance(schema, dict):
        raise InvalidField(
            "response_format", "`response_format` must be of type `text`, `json_object` or `json_schema`."
        )
    lost |= unread(schema, _SCHEMA_FIELDS, "response_format.")
    return ResponseFormat(
        kind="json_schema",
        name=text(schema, "name"),
        schema=schema.get("schema") if isinstance(schema.get("schema"), dict) else None,
        description=text(schema, "description"),
        strict=boolean(schema, "strict"),
    )


def write_format(value: ResponseFormat | None) -> Any:
    if value is None:
        return None
    if value.kind == "json_object":
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": value.name or "answer", "schema": value.schema or {}}
    if value.description is not None:
        schema["description"] = value.description
    if value.strict is not None:
        schema["strict"] = value.strict
    return {"type": "json_schema", "json_schema": schema}
