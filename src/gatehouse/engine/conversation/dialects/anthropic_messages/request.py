"""Converts requests of the messages API to and from the internal form."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.conversion.claude import claude
from gatehouse.engine.conversation.conversion.lost import unread
from gatehouse.engine.conversation.conversion.system_messages import leading_texts, placed
from gatehouse.engine.conversation.conversion.users import lost_user, short_user
from gatehouse.engine.conversation.decoding.optional_fields import (
    boolean,
    integer,
    number,
    text,
    texts,
)
from gatehouse.engine.conversation.dialects.anthropic_messages import content
from gatehouse.engine.conversation.dialects.anthropic_messages.reply import shown_thinking
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    FormMessage,
    Reasoning,
    Request,
    ResponseFormat,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

#: The limit that is sent if the client sets none, because this dialect requires one.
DEFAULT_MAX_TOKENS = 4096
#: the same for a model that may think, because the limit includes the thinking
DEFAULT_MAX_TOKENS_WITH_THINKING = 32_000

#: Anthropic's limit for `metadata.user_id`
MAX_USER_CHARACTERS = 256
#: fields that are converted, or do not concern the provider
_CONVERTED_FIELDS = frozenset(
    {
        "max_tokens", "messages", "metadata", "model", "output_config", "stop_sequences", "stream", "system",
        "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
    }
)  # fmt: skip
_TOOL_FIELDS = frozenset({"type", "name", "description", "input_schema", "strict"})
_CHOICE_FIELDS = frozenset({"type", "name", "disable_parallel_tool_use"})
_THINKING_FIELDS = frozenset({"type", "budget_tokens", "display"})
_FORMAT_FIELDS = frozenset({"type", "schema"})
_UNWRITTEN = frozenset(
    {
        "seed", "frequency_penalty", "presence_penalty", "prompt_cache_key", "strict", "format_strict",
        "format_name", "format_description", "detail", "signature", "later_system",
    }
)  # fmt: skip
_READ_MODE = {"auto": "auto", "any": "required", "none": "none"}
_WRITE_MODE = {mode: name for name, mode in _READ_MODE.items()}
#: an instruction for models of APIs that have no JSON mode
JSON_ONLY = "Answer with one JSON object and nothing else."
#: the highest temperature; in other dialects it is 2
MAX_TEMPERATURE = 1.0


def read(body: Mapping[str, Any], model: str, stream: bool, betas: tuple[str, ...] = ()) -> Request:
    config, metadata = body.get("output_config") or {}, body.get("metadata") or {}
    lost = (
        unread(body, _CONVERTED_FIELDS)
        | unread(config, frozenset({"format", "effort"}), "output_config.")
        | unread(metadata, frozenset({"user_id"}), "metadata.")
    )
    for name, fields in (("thinking", _THINKING_FIELDS), ("output_config.format", _FORMAT_FIELDS)):
        value = body.get("thinking") if name == "thinking" else config.get("format")
        if isinstance(value, dict):
            lost |= unread(value, fields, f"{name}.")
    requested_effort = effort.of_anthropic(body.get("thinking"), config.get("effort"))
    if requested_effort is None and body.get("thinking") is not None:
        # This `thinking` leaves the effort to the model. That is the default in other APIs, so nothing is sent for it.
        lost["thinking"] = None
    messages = content.read_messages(body["messages"], lost)
    system = content.read_system(body.get("system"), lost)
    if system:
        messages.insert(0, FormMessage("system", system))
    choice = body.get("tool_choice") or {}
    lost |= unread(choice, _CHOICE_FIELDS, "tool_choice.")
    tools = _read_tools(body, lost)
    return Request(
        model=model,
        stream=stream,
        messages=tuple(messages),
        tools=tools,
        tool_choice=_read_choice(choice),
        parallel_tool_calls=False if choice.get("disable_parallel_tool_use") is True else None,
        response_format=_read_format(config),
        user=text(metadata, "user_id"),
        effort=requested_effort,
        shows_reasoning=shown_thinking(body).texts,
        returns_reasoning=shown_thinking(body).blocks,
        betas=betas,
        sampling=Sampling(
            max_tokens=integer(body, "max_tokens"),
            temperature=number(body, "temperature"),
            top_p=number(body, "top_p"),
            top_k=integer(body, "top_k"),
            stop=texts(body, "stop_sequences"),
        ),
        lost=tuple(lost),
    )


def prepend_instructions(body: dict[str, Any], text_: str) -> None:
    system = body.get("system")
    if isinstance(system, list):
        body["system"] = [{"type": "text", "text": text_}, *system]
    else:
        body["system"] = f"{text_}\n\n{system}" if system else text_


def thinking(request: Request) -> effort.ClaudeThinking:
    """Return the fields about thinking that are sent for the request."""
    return effort.for_anthropic(
        request.effort,
        request.model,
        request.reasons,
        max_tokens=request.sampling.max_tokens or _default_max_tokens(request, thinks=True),
        must_call=forces_call(request) and accepts_tool_choice(request),
        accepts_budget=_accepts_budget(request.messages),
        shows=request.shows_reasoning,
    )


def refuse_prefill(request: Request) -> None:
    """Raises `InvalidField` if the request ends with the beginning of an answer, and the model refuses this."""
    model = claude(request.model)
    if model is None or model.accepts_prefill:
        return
    sent = (
        message
        for message in reversed(request.messages)
        if message.role != "system" and _is_sent(message) and not _is_reasoning(message)
    )
    last = next(sent, None)
    if last is not None and last.role == "assistant" and not any(isinstance(part, ToolCall) for part in last.parts):
        raise InvalidField(
            "messages",
            "`messages` must end with a message of the user or a tool's result: this model does not continue a message"
            " of the assistant.",
        )


def _is_sent(message: FormMessage) -> bool:
    """Return whether the message has parts other than empty texts. Empty texts are left out."""
    return any(not isinstance(part, Text) or part.text for part in message.parts)


def _is_reasoning(message: FormMessage) -> bool:
    return all(isinstance(part, Reasoning) for part in message.parts)


def forces_call(request: Request) -> bool:
    choice = request.tool_choice
    return bool(request.tools) and choice is not None and choice.mode in {"required", "named"}


def accepts_tool_choice(request: Request) -> bool:
    """Return whether the model accepts the request's tool choice. Newer models refuse one that forces a call."""
    model = claude(request.model)
    return model is None or model.accepts_forced_calls or not forces_call(request)


def offered_tools(request: Request) -> tuple[Tool, ...]:
    """Return the request's tools. If the request forces a call of one tool, and the model refuses this, return only
    this tool."""
    choice = request.tool_choice
    if choice is None or choice.mode != "named" or accepts_tool_choice(request):
        return request.tools
    return tuple(tool for tool in request.tools if tool.name == choice.name) or request.tools


def accepted_sampling(request: Request, thinks: bool) -> Sampling:
    """Return the parameters that the model accepts. Newer models, and models that think, accept only the defaults."""
    model = claude(request.model)
    if not thinks and (model is None or model.accepts_sampling):
        return request.sampling
    return msgspec.structs.replace(request.sampling, temperature=None, top_p=None, top_k=None)


def unwritten_for_claude(request: Request) -> frozenset[str]:
    """Return the features that are left out because the model refuses them. `request` must be a result of
    `placed`."""
    planned = thinking(request)
    names = {"effort"} if planned.is_lost else set()
    if not planned.is_lost and "budget_tokens" not in planned.fields.get("thinking", {}):
        names.add("effort_budget")
    if not planned.thinks:
        names |= {"reasoning", "returned_reasoning"}
    if not accepts_tool_choice(request):
        names.add("tool_choice")
    sampling = accepted_sampling(request, planned.thinks)
    # 1 is the default of `temperature` and `top_p`, so leaving out a 1 loses nothing.
    names |= {
        name
        for name in ("temperature", "top_p", "top_k")
        if getattr(sampling, name) is None and (name == "top_k" or getattr(request.sampling, name) != 1)
    }
    return frozenset(names)


def unwritten(request: Request) -> frozenset[str]:
    """Return the features of a request that `write` leaves out or changes."""
    return (
        _UNWRITTEN
        | unwritten_for_claude(placed(request))
        | replaced(request)
        | lost_user(request.user, MAX_USER_CHARACTERS)
    )


def replaced(request: Request) -> frozenset[str]:
    """Return the features for which a weaker substitute is sent: a lower temperature, or an instruction to answer with
    JSON."""
    temperature, response_format = request.sampling.temperature, request.response_format
    names = {"temperature"} if temperature is not None and temperature > MAX_TEMPERATURE else set()
    if response_format is not None and response_format.kind == "json_object":
        names.add("response_format")
    return frozenset(names)


def write(request: Request) -> dict[str, Any]:
    request = placed(request)
    planned = thinking(request)
    sampling = accepted_sampling(request, planned.thinks)
    refuse_prefill(request)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": sampling.max_tokens or _default_max_tokens(request, thinks=planned.thinks),
        "messages": content.write_messages(request.messages, thinks=planned.thinks),
        "system": _write_system(request) or None,
        "temperature": None if sampling.temperature is None else min(sampling.temperature, MAX_TEMPERATURE),
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": list(sampling.stop) or None,
        "tools": [_write_tool(tool) for tool in offered_tools(request)] or None,
        "tool_choice": _write_choice(request) if request.tools else None,
        "thinking": planned.fields.get("thinking"),
        "output_config": {**planned.fields.get("output_config", {}), **_write_format(request.response_format)} or None,
        "metadata": None if request.user is None else {"user_id": short_user(request.user, MAX_USER_CHARACTERS)},
        "stream": request.stream or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _default_max_tokens(request: Request, *, thinks: bool) -> int:
    """Return the limit of a request that sets none."""
    accepts_more = claude(request.model) is not None or request.max_output_tokens is not None
    tokens = DEFAULT_MAX_TOKENS_WITH_THINKING if thinks and accepts_more else DEFAULT_MAX_TOKENS
    return min(tokens, request.max_output_tokens or tokens)


def _accepts_budget(messages: Sequence[FormMessage]) -> bool:
    """Return whether Anthropic accepts a thinking budget after these messages. The last message must be the user's. If
    there are tool results after the assistant's last message, that message must begin with thinking. System messages
    are ignored, because they are written elsewhere."""
    ends_with_user = has_results = False
    for message in reversed(messages):
        if message.role == "system" or not _is_sent(message):
            continue
        if message.role == "assistant":
            return ends_with_user and (not has_results or isinstance(message.parts[0], Reasoning))
        ends_with_user = True
        has_results = has_results or any(isinstance(part, ToolResult) for part in message.parts)
    return ends_with_user and not has_results


def _read_tools(body: Mapping[str, Any], lost: dict[str, None]) -> tuple[Tool, ...]:
    """Return the tools, except those that search for tools. Search is not needed, because the tools that
    it could find are all offered to the model."""
    read = []
    for index, tool in enumerate(body.get("tools") or ()):
        if str(tool.get("type")).startswith(content.TOOL_SEARCH):
            lost[f"tools.{content.TOOL_SEARCH}"] = None
            continue
        read.append(_read_tool(tool, f"tools[{index}]", lost))
    return tuple(read)


def _read_tool(tool: Mapping[str, Any], path: str, lost: dict[str, None]) -> Tool:
    schema = tool.get("input_schema")
    if tool.get("type", "custom") != "custom" or not isinstance(schema, dict):
        raise InvalidField(path, f"`{path}`: this provider takes only custom tools with an `input_schema`.")
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidField(f"{path}.name", f"`{path}.name` is required.")
    lost |= unread(tool, _TOOL_FIELDS, "tools.")
    return Tool(
        name=name, description=text(tool, "description"), parameters=schema, strict=boolean(tool, "strict") or None
    )


def _write_tool(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters or {"type": "object", "properties": {}}
    written: dict[str, Any] = {"name": tool.name, "input_schema": schema}
    if tool.description is not None:
        written["description"] = tool.description
    return written


def _read_choice(choice: Mapping[str, Any]) -> ToolChoice | None:
    if not choice:
        return None
    kind, name = choice.get("type"), choice.get("name")
    if kind == "tool" and isinstance(name, str):
        if name.startswith(content.TOOL_SEARCH):
            raise InvalidField("tool_choice.name", "`tool_choice.name`: this provider has no tools that search tools.")
        return ToolChoice("named", name)
    match kind:
        case "auto" | "none":
            return ToolChoice(kind)
        case "any":
            return ToolChoice("required")
    raise InvalidField("tool_choice", "`tool_choice.type` must be `auto`, `any`, `tool` or `none`.")


def _write_choice(request: Request) -> dict[str, Any] | None:
    choice = request.tool_choice
    if choice is None and request.parallel_tool_calls is not False:
        return None
    written: dict[str, Any] = {"type": "auto"}
    if choice is not None and accepts_tool_choice(request):
        named = choice.mode == "named"
        written = {"type": "tool", "name": choice.name} if named else {"type": _WRITE_MODE[choice.mode]}
    if request.parallel_tool_calls is False and written["type"] != "none":
        written["disable_parallel_tool_use"] = True
    return written


def _read_format(config: Mapping[str, Any]) -> ResponseFormat | None:
    response_format = config.get("format")
    if response_format is None:
        return None
    if (
        not isinstance(response_format, dict)
        or response_format.get("type") != "json_schema"
        or not isinstance(response_format.get("schema"), dict)
    ):
        raise InvalidField("output_config.format", "`output_config.format` must be a `json_schema` with its `schema`.")
    return ResponseFormat(kind="json_schema", schema=response_format["schema"])


def _write_format(response_format: ResponseFormat | None) -> dict[str, Any]:
    if response_format is None or response_format.kind != "json_schema":
        return {}
    return {"format": {"type": "json_schema", "schema": response_format.schema or {}}}


def _write_system(request: Request) -> str:
    texts_ = leading_texts(request.messages)
    if request.response_format is not None and request.response_format.kind == "json_object":
        # This dialect has no JSON mode; an instruction replaces it.
        texts_.append(JSON_ONLY)
    return "\n\n".join(texts_)
