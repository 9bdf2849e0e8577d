"""The error for model API paths that Gatehouse does not serve, in the error format of the caller's client."""

from collections.abc import Mapping
from typing import Final

from gatehouse.foundation.errors import NotFound, Refusal
from gatehouse.foundation.http.handlers import MethodNotAllowed
from gatehouse.ingress.gateway import ALIASES, GATEWAY_PATHS, MCP_SERVER, MODEL_CALLS, MODELS, SCAN, is_server_path

#: the APIs of OpenAI and Anthropic that Gatehouse does not serve: maps the path below `/v1` to a name for the message
_APIS: Final = {
    "assistants": "assistants",
    "audio": "this operation on audio",
    "batches": "this operation on batches",
    "beta": "beta APIs",
    "chat/completions": "stored chat completions",
    "complete": "legacy text completions",
    "containers": "containers",
    "conversations": "stored conversations",
    "edits": "legacy text edits",
    "engines": "engines",
    "evals": "evals",
    "files": "this operation on files",
    "fine-tunes": "fine-tuning",
    "fine_tuning": "fine-tuning",
    "images": "this operation on images",
    "messages/batches": "this operation on message batches",
    "ocr": "text recognition",
    "organization": "provider administration",
    "realtime": "realtime sessions",
    "responses": "this operation on responses",
    "score": "scoring",
    "skills": "skills",
    "threads": "assistants",
    "uploads": "uploads",
    "vector_stores": "vector stores",
    "videos": "videos",
}
#: The alternative that the message names, by the path below `/v1`.
_INSTEAD: Final = {
    "assistants": "Use POST /v1/responses or POST /v1/chat/completions, and keep the conversation in the client.",
    "batches": "The platform serves POST and GET /v1/batches; outposts serve no batches.",
    "chat/completions": "Send the whole conversation with each call.",
    "complete": "Use POST /v1/messages.",
    "conversations": "Send the whole conversation as `input` of POST /v1/responses.",
    "edits": "Use POST /v1/chat/completions.",
    "files": "The platform serves POST and GET /v1/files; outposts serve no files.",
    "messages/batches": "The platform serves POST and GET /v1/messages/batches; outposts serve no batches.",
    "responses": "A response that a provider keeps can be read (GET) and deleted (DELETE), and its input_items can be"
    " listed. None runs in the background, so there is nothing to cancel.",
    "threads": "Use POST /v1/responses or POST /v1/chat/completions, and keep the conversation in the client.",
    "uploads": "Send files as content of a call: images, and documents to providers that read them.",
}
#: the operations of Cohere's API that Gatehouse does not serve, and the path to use instead: by the path below the
#: version
_COHERES: Final = {
    "chat": ("Cohere's chats", "POST /v1/chat/completions"),
    "embed": ("Cohere's embeddings", "POST /v1/embeddings"),
    "generate": ("Cohere's text completions", "POST /v1/completions"),
}
_VERSIONS: Final = ("/v1/", "/v2/")
#: the first segments, below `/v1`, of paths that only Anthropic's API has
_ANTHROPICS_SEGMENTS: Final = frozenset({"complete", "messages"})
#: the served paths, for the message; only paths below `/v1` are listed
_SERVED: Final = ", ".join([*(f"POST {path}" for path in MODEL_CALLS if path.startswith("/v1/")), f"POST {SCAN}",
                            f"GET {MODELS}"])  # fmt: skip
_MAX_SHOWN_PATH_CHARACTERS: Final = 100


class NotServed(NotFound):
    """The path belongs to a known model API that Gatehouse does not serve."""

    code = "not_served"
    error_format = "gateway"


class NotServedToAnthropic(NotFound):
    code = "not_served"
    error_format = "anthropic"


class UnknownPath(NotFound):
    code = "unknown_path"
    error_format = "gateway"


class UnknownPathToAnthropic(NotFound):
    code = "unknown_path"
    error_format = "anthropic"


def refusal(method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
    """Return the error for a path that no route serves, or None if the path does not belong to a model API."""
    path = path.rstrip("/")
    allowed = GATEWAY_PATHS.get(MCP_SERVER if is_server_path(path) else path) or (
        ("GET",) if path.startswith((MODELS + "/", "/models/")) else None
    )
    if allowed is not None:
        return MethodNotAllowed(headers={"Allow": ", ".join(allowed)}) if method not in allowed else None
    has_version = path.startswith(_VERSIONS)
    below = path[len(_VERSIONS[0]) :] if has_version else path.removeprefix("/")
    api, instead = (None, None) if path.startswith("/v2/") else (_lookup(_APIS, below), _lookup(_INSTEAD, below))
    if api is None and has_version and below in _COHERES:
        api, alternative = _COHERES[below]
        instead = f"Use {alternative}."
    if api is None and path != "/v1" and not has_version:
        return None
    first_segment = below.removeprefix("v1/").partition("/")[0]
    to_anthropic = "anthropic-version" in headers or first_segment in _ANTHROPICS_SEGMENTS
    operation = f"{method} {path[:_MAX_SHOWN_PATH_CHARACTERS]}"
    if api is not None:
        hint = f" {instead}" if instead is not None else ""
        message = f"Gatehouse does not serve {api} ({operation}).{hint} It serves {_SERVED}."
        return (NotServedToAnthropic if to_anthropic else NotServed)(message)
    message = f"Unknown path: {operation}. Gatehouse serves {_SERVED}."
    if below.startswith("v1/") and "/" + below in (*GATEWAY_PATHS, *ALIASES):
        message = f"Unknown path: {operation}. `/v1` is in it twice: set the client's base URL without `/v1`."
    return (UnknownPathToAnthropic if to_anthropic else UnknownPath)(message)


def _lookup(table: Mapping[str, str], below: str) -> str | None:
    first, _, rest = below.partition("/")
    second = rest.partition("/")[0]
    return table.get(f"{first}/{second}") or table.get(first)
