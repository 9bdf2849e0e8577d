"""A model call in the pipeline: the client's request, decoded once, with its unknown fields."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from gatehouse.foundation.secrets.owned_ids import KeptObject


class KeptRequest(msgspec.Struct, frozen=True):
    """An operation on a response that a provider keeps. `path` is the path below the response, `query` is the
    client's query, and `parameters` are the query's parameters that the provider receives."""

    method: str
    public_id: str
    path: str = ""
    query: str = ""
    parameters: list[tuple[str, str]] = []


class NativeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a call for a provider that has the client's API. The stage `response_state` makes them when it
    resolves the ids in the call. Calls of Anthropic's messages have only the options about containers."""

    #: whether the provider may keep the response
    keeps: bool = False
    #: the response that the call continues, or that the operation is for
    previous: KeptObject | None = None
    #: the provider's ids of items that it keeps for this caller and that the input refers to
    references: frozenset[str] = frozenset()
    #: prefixes of the types of hosted tools that are left out
    left_out: tuple[str, ...] = ()
    #: converts the provider's id of a kept response or item to the client's: called with provider, model and id
    public_id: Callable[[str, str, str], str] | None = None
    #: converts the provider's id of a container to the client's: called with provider, model and id
    public_container: Callable[[str, str, str], str] | None = None
    #: the providers of the containers of this caller that the call names, by the provider's id
    containers: Mapping[str, str] = {}
    #: whether the provider adds an unknown number of tokens to the input
    fills_context: bool = False


#: the options of all other calls
NO_OPTIONS: Final = NativeOptions()


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a form. `name` is its field, and `extension` is the extension of its file name, or empty. The rest of
    the file name is not sent."""

    name: str
    data: memoryview
    extension: str
    media_type: str


class ModelCall(msgspec.Struct, kw_only=True):
    """A model call. `body` is the decoded request without fields that only the gateway reads (`fallbacks`). `model` is
    the requested name: `provider/model-id`, a bare id or `auto`. `headers` are the client's headers that are passed to
    a provider of the same dialect."""

    #: no field of the class, but of `NativeCall`
    options = NO_OPTIONS

    dialect: str
    model: str
    stream: bool
    body: dict[str, Any]
    #: the client's bytes from which `body` was decoded
    raw_body: bytes = b""
    #: the decoded `body`, encoded by `decoding.encode` before any change
    unchanged_body: bytes = b""
    #: whether decoding kept all digits of all numbers in `raw_body`
    exact: bool = True
    fallbacks: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    #: the operation on a kept response; None for a call of a model
    kept: KeptRequest | None = None
    #: the files of a call that is a form; `body` has its other fields
    files: tuple[FilePart, ...] = ()
    is_form: bool = False
    #: the format of a complete answer
    answer_form: Literal["json", "text", "binary"] = "json"


class NativeCall(ModelCall, kw_only=True):
    """A call of the Responses API or of Anthropic's messages whose ids are resolved: `body` and `kept` have the
    provider's ids."""

    options: NativeOptions


def resolved_call(call: ModelCall, options: NativeOptions, kept: KeptRequest | None) -> NativeCall:
    """Return the resolved form of a call."""
    return NativeCall(**{**msgspec.structs.asdict(call), "kept": kept}, options=options)
