"""Writes requests of Converse from the internal form."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.conversion.arguments import arguments_object
from gatehouse.engine.conversation.conversion.call_ids import accepted_id
from gatehouse.engine.conversation.conversion.claude import claude
from gatehouse.engine.conversation.conversion.effort import ClaudeThinking
from gatehouse.engine.conversation.conversion.system_messages import leading_texts, placed
from gatehouse.engine.conversation.dialects.anthropic_messages.request import (
    JSON_ONLY,
    MAX_TEMPERATURE,
    accepted_sampling,
    accepts_tool_choice,
    offered_tools,
    refuse_prefill,
    replaced,
    thinking,
    unwritten_for_claude,
)
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    Document,
    FormMessage,
    Image,
    Part,
    Reasoning,
    Request,
    ResponseFormat,
    Text,
    ToolCall,
    ToolResult,
)

_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
_REFUSED_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9 ()\[\]-]+|(?<=\s)\s+")
_MAX_NAME_CHARACTERS: Final = 180
_ID: Final = re.compile("[a-zA-Z0-9_.:-]{1,64}")
_UNWRITTEN: Final = frozenset(
    {
        "parallel_tool_calls", "seed", "frequency_penalty", "presence_penalty", "user", "prompt_cache_key", "detail",
        "signature", "format_strict", "later_system",
    }
)  # fmt: skip
#: Features of Anthropic's API that Bedrock accepts, and that have an effect on a converted call. Each is enabled from
#: the first version of a model that has it to the last that needs this; None: there is no last version.
_BETAS: Final[Mapping[str, tuple[tuple[int, int], tuple[int, int] | None]]] = {
    "context-1m-2025-08-07": ((4, 0), None),
    "interleaved-thinking-2025-05-14": ((4, 0), None),
    "output-128k-2025-02-19": ((3, 7), (3, 7)),
    "token-efficient-tools-2025-02-19": ((3, 7), None),
}
_NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def unwritten(request: Request) -> frozenset[str]:
    """Return the features of a request that `write` leaves out or changes."""
    request = placed(request)
    if _is_anthropic(request.model):
        names = _UNWRITTEN | unwritten_for_claude(request)
    else:
        names = _UNWRITTEN | {"effort", "reasoning", "returned_reasoning"}
    if len(_betas(request)) < len(request.betas):
        names |= {"betas"}
    if not _model_fields(request.model, request.sampling.top_k):
        names |= {"top_k"}
    if request.tool_choice is not None and request.tool_choice.mode == "none" and any(_called_tools(request.messages)):
        # The tools have to be declared, so the model may call them.
        names |= {"tool_choice"}
    return names | replaced(request)


def write(request: Request) -> dict[str, Any]:
    """Return the body. It does not contain the model, which is in the path."""
    request = placed(request)
    planned = _thinking(request)
    if _is_anthropic(request.model):
        refuse_prefill(request)
    sampling = accepted_sampling(request, planned.thinks)
    inference: dict[str, Any] = {
        "maxTokens": sampling.max_tokens,
        "temperature": None if sampling.temperature is None else min(sampling.temperature, MAX_TEMPERATURE),
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop) or None,
    }
    betas = _betas(request)
    model_fields = {**planned.fields, **_model_fields(request.model, sampling.top_k)}
    if betas:
        model_fields["anthropic_beta"] = betas
    body: dict[str, Any] = {
        "messages": _write_messages(request.messages, thinks=planned.thinks),
        "system": _write_system(request),
        "inferenceConfig": {name: value for name, value in inference.items() if value is not None},
        "toolConfig": _write_tools(request),
        "outputConfig": _write_format(request.response_format),
        "additionalModelRequestFields": model_fields,
    }
    return {name: value for name, value in body.items() if value}


def _write_messages(messages: Sequence[FormMessage], *, thinks: bool) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role, because roles must alternate here. `thinks`: the model may think, and
    accepts its earlier thinking."""
    written: list[dict[str, Any]] = []
    names = _DocumentNames()
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        blocks = [
            _write_block(part, f"messages[{index}]", names)
            for part in message.parts
            if not (isinstance(part, Text) and not part.text.strip()) and (thinks or not isinstance(part, Reasoning))
        ]
        if not blocks:
            continue
        if written and written[-1]["role"] == message.role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": message.role, "content": blocks})
    return written


def _write_block(part: Part, path: str, names: "_DocumentNames") -> dict[str, Any]:
    match part:
        case Document():
            return _write_document(part, path, names)
        case Reasoning(is_sealed=True):
            return {"reasoningContent": {"redactedContent": part.signature}}
        case Reasoning():
            return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}
        case Text():
            return {"text": part.text}
        case Image():
            return _write_image(part, path)
        case ToolCall():
            return {
                "toolUse": {"toolUseId": _id(part.id), "name": part.name, "input": arguments_object(part.arguments)}
            }
        case ToolResult():
            content = [
                _write_block(item, path, names)
                for item in part.content
                if not (isinstance(item, Text) and not item.text)
            ]
            status = "error" if part.is_error else "success"
            return {"toolResult": {"toolUseId": _id(part.call_id), "content": content, "status": status}}


def _id(call_id: str) -> str:
    return accepted_id(call_id, _ID, 32)


def _write_image(image: Image, path: str) -> dict[str, Any]:
    if image.data is None:
        raise InvalidField(path, f"`{path}`: this provider takes images only as data, not by URL.")
    image_format = _FORMATS.get((image.media_type or "").lower())
    if image_format is None:
        raise InvalidField(path, f"`{path}`: this provider takes only PNG, JPEG, GIF and WebP images.")
    return {"image": {"format": image_format, "source": {"bytes": image.data}}}


class _DocumentNames:
    """Names documents. Bedrock requires a different name for each, and accepts only certain characters."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        #: the last number that was tried, by the name without a number
        self._numbers: dict[str, int] = {}

    def new(self, name: str | None) -> str:
        stem = _REFUSED_IN_NAMES.sub("-", name or "document")[:_MAX_NAME_CHARACTERS]
        unique = stem
        while unique in self._taken:
            number = self._numbers[stem] = self._numbers.get(stem, 1) + 1
            unique = f"{stem} {number}"
        self._taken.add(unique)
        return unique


def _write_document(document: Document, path: str, names: _DocumentNames) -> dict[str, Any]:
    if document.data is None:
        raise InvalidField(path, f"`{path}`: this provider takes documents only as data, not by URL.")
    document_format = _DOCUMENT_FORMATS.get((document.media_type or "").lower())
    if document_format is None:
        raise InvalidField(path, f"`{path}`: this provider takes only PDF, text and office documents.")
    source = {"bytes": document.data}
    return {"document": {"format": document_format, "name": names.new(document.name), "source": source}}


def _write_system(request: Request) -> list[dict[str, Any]]:
    texts = leading_texts(request.messages)
    if request.response_format is not None and request.response_format.kind == "json_object":
        # Converse has no such mode; an instruction is the closest equivalent.
        texts.append(JSON_ONLY)
    return [{"text": text} for text in texts]


def _write_tools(request: Request) -> dict[str, Any] | None:
    """Return the tools that the request declares, and those that its messages call, because Converse requires both.

    A called tool that the request does not declare has only a name. With the choice `none`, the request's tools are
    left out if the messages call no tool."""
    called = dict.fromkeys(_called_tools(request.messages))
    choice = request.tool_choice
    is_accepted = accepts_tool_choice(request)
    declared = request.tools if called or choice is None or choice.mode != "none" else ()
    if not is_accepted:
        usable_names = called.keys() | {tool.name for tool in offered_tools(request)}
        declared = tuple(tool for tool in declared if tool.name in usable_names)
    declared_names = {tool.name for tool in declared}
    tools = [
        _tool(tool.name, tool.parameters, description=tool.description or None, strict=tool.strict or None)
        for tool in declared
    ]
    tools += [_tool(name, None) for name in called if name not in declared_names]
    if not tools:
        return None
    if choice is None or choice.mode in {"auto", "none"} or not is_accepted:
        return {"tools": tools}
    chosen = {"any": {}} if choice.mode == "required" else {"tool": {"name": choice.name}}
    return {"tools": tools, "toolChoice": chosen}


def _tool(name: str, parameters: Mapping[str, Any] | None, **optional_fields: Any) -> dict[str, Any]:
    spec = {"name": name, "inputSchema": {"json": parameters or _NO_PARAMETERS}}
    return {"toolSpec": spec | {key: value for key, value in optional_fields.items() if value is not None}}


def _called_tools(messages: Iterable[FormMessage]) -> Iterable[str]:
    return (part.name for message in messages for part in message.parts if isinstance(part, ToolCall))


def _write_format(response_format: ResponseFormat | None) -> dict[str, Any] | None:
    if response_format is None or response_format.kind != "json_schema":
        return None
    schema = {"schema": msgspec.json.encode(response_format.schema or {"type": "object"}).decode()}
    if response_format.name is not None:
        schema["name"] = response_format.name
    if response_format.description is not None:
        schema["description"] = response_format.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}


def _model_fields(model: str, top_k: int | None) -> dict[str, Any]:
    """Return fields that only some vendors' models accept, in the vendor's format."""
    if top_k is None:
        return {}
    if "amazon.nova" in model:
        return {"inferenceConfig": {"topK": top_k}}
    return {"top_k": top_k} if _is_anthropic(model) else {}


def _betas(request: Request) -> list[str]:
    """Return the features that are enabled. Bedrock refuses a call that enables a feature that the model lacks."""
    model = claude(request.model) if _is_anthropic(request.model) else None
    if model is None:
        return []
    versions = ((name, _BETAS[name]) for name in dict.fromkeys(request.betas) if name in _BETAS)
    return [name for name, (first, last) in versions if first <= model.version and (not last or model.version <= last)]


def _thinking(request: Request) -> ClaudeThinking:
    """Return the fields about thinking. On Bedrock, only Anthropic's models have such fields."""
    return thinking(request) if _is_anthropic(request.model) else ClaudeThinking({})


def _is_anthropic(model: str) -> bool:
    return "anthropic." in model
