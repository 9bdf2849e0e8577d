"""Writes requests to Gemini from the internal form."""

import mimetypes
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from gatehouse.engine.conversation.conversion import effort
from gatehouse.engine.conversation.conversion.arguments import arguments_object
from gatehouse.engine.conversation.conversion.system_messages import leading_texts, placed
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
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

#: Google's placeholder for a signature that is missing, because another model made the call or the client dropped it.
SIGNATURE_PLACEHOLDER: Final = "skip_thought_signature_validator"
#: Models that require no signatures.
_MODELS_WITHOUT_SIGNATURES: Final = re.compile(r"(?:models/)?gemini-[12]\b")

#: the end of the host names of files in a provider's account
_OWN_HOSTS: Final = "generativelanguage.googleapis.com"

_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}


_UNWRITTEN: Final = frozenset(
    {
        "parallel_tool_calls", "user", "prompt_cache_key", "strict", "format_strict", "format_name",
        "format_description", "detail", "document_name", "reasoning", "returned_reasoning", "later_system", "betas",
    }
)  # fmt: skip


def unwritten(request: Request) -> frozenset[str]:
    """Return the features of a request that `write` leaves out or changes."""
    return _UNWRITTEN | effort.unwritten_for_gemini(request.effort, request.model, request.reasons)


def write(request: Request) -> dict[str, Any]:
    request = placed(request)
    sampling = request.sampling
    generation: dict[str, Any] = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
        "seed": sampling.seed,
        "frequencyPenalty": sampling.frequency_penalty,
        "presencePenalty": sampling.presence_penalty,
        "stopSequences": list(sampling.stop) or None,
        "thinkingConfig": effort.thinking_config(
            request.effort, request.model, request.reasons, shows=request.shows_reasoning
        ),
        **_write_format(request.response_format),
    }
    body: dict[str, Any] = {
        "contents": _write_contents(request),
        "systemInstruction": _write_system(request.messages),
        "tools": [{"functionDeclarations": [_write_tool(tool) for tool in request.tools]}] if request.tools else None,
        "toolConfig": _write_choice(request.tool_choice) if request.tools and request.tool_choice else None,
        "generationConfig": {name: value for name, value in generation.items() if value is not None} or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _write_contents(request: Request) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role, so that the results of parallel calls are in one content."""
    requires_signatures = _MODELS_WITHOUT_SIGNATURES.match(request.model) is None
    names = {part.id: part.name for message in request.messages for part in message.parts if isinstance(part, ToolCall)}
    contents: list[dict[str, Any]] = []
    for index, message in enumerate(request.messages):
        if message.role == "system":
            continue
        parts = [written for part in message.parts for written in _write_part(part, names, f"messages[{index}]")]
        if requires_signatures and message.role == "assistant":
            _sign(parts)
        role = "model" if message.role == "assistant" else "user"
        if not parts:
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(parts)
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _sign(parts: Sequence[dict[str, Any]]) -> None:
    """Add the placeholder to the first of parallel calls if none has a signature."""
    calls = [part for part in parts if "functionCall" in part]
    if calls and not any("thoughtSignature" in call for call in calls):
        calls[0]["thoughtSignature"] = SIGNATURE_PLACEHOLDER


def _write_part(part: Part, names: Mapping[str, str], path: str) -> list[dict[str, Any]]:
    match part:
        case Text():
            return [{"text": part.text}] if part.text else []
        case Image() | Document():
            return [_write_file(part, path)]
        case Reasoning():
            return []
        case ToolCall():
            call: dict[str, Any] = {"functionCall": {"name": part.name, "args": arguments_object(part.arguments)}}
            if part.id:
                call["functionCall"]["id"] = part.id
            return [call if part.signature is None else {**call, "thoughtSignature": part.signature}]
        case ToolResult():
            if part.call_id not in names:
                raise InvalidField(path, f"`{path}` answers a tool call that no message before it makes.")
            response = {"id": part.call_id, "name": names[part.call_id], "response": _write_result(part)}
            # A function's response must be an object; its images and documents follow as separate parts.
            files = [_write_file(item, path) for item in part.content if not isinstance(item, Text)]
            return [{"functionResponse": response}, *files]


def _write_file(part: Image | Document, path: str) -> dict[str, Any]:
    if part.url is None:
        return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    if not _is_public(part.url):
        raise InvalidField(path, f"`{path}`: send the file as data, or by a public `https://` URL.")
    file = {"fileUri": part.url}
    media_type = mimetypes.guess_type(part.url.partition("?")[0])[0]
    return {"fileData": {**file, "mimeType": media_type} if media_type else file}


def _is_public(url: str) -> bool:
    """Return whether the URL is a web address outside the provider's account. Google would read a file in the account,
    such as an uploaded file or one in a storage bucket (`gs://`), with the gateway's rights."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and not host.endswith(_OWN_HOSTS)


def _write_result(result: ToolResult) -> dict[str, Any]:
    text = "\n".join(item.text for item in result.content if isinstance(item, Text))
    if result.is_error:
        return {"error": text}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"result": text}
    return value if isinstance(value, dict) else {"result": value}


def _write_system(messages: Sequence[FormMessage]) -> dict[str, Any] | None:
    texts = leading_texts(messages)
    return {"parts": [{"text": text} for text in texts]} if texts else None


def _write_tool(tool: Tool) -> dict[str, Any]:
    written: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parametersJsonSchema"] = tool.parameters
    return written


def _write_choice(choice: ToolChoice) -> dict[str, Any]:
    config: dict[str, Any] = {"mode": _MODES[choice.mode]}
    if choice.mode == "named":
        config["allowedFunctionNames"] = [choice.name]
    return {"functionCallingConfig": config}


def _write_format(response_format: ResponseFormat | None) -> dict[str, Any]:
    if response_format is None:
        return {}
    return {
        "responseMimeType": "application/json",
        "responseJsonSchema": response_format.schema if response_format.kind == "json_schema" else None,
    }
