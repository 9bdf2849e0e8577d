"""A model call in the pipeline: the client's request, decoded once, with its unknown fields."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from gatehouse.foundation.secrets.owned_ids import KeptObject


class KeptRequest(msgspec.Struct):
    """An operation on a response that a provider keeps. `path` is the path below the response, `query` is the
    client's query, and `parameters` are the query's parameters that the provider receives."""

    method: str
    public_id: str
    path: str = ""
    query: str = ""
    parameters: list[tuple[str, str]] = []


class NativeOptions(msgspec.Struct):
    """Options of a call of the Responses API for a provider that has this API (`stages.calls.response_state`)."""

    #: whether the provider may keep the response
    keeps: bool = False
    #: the response that the call continues
    previous: KeptObject | None = None
    #: the operation on a kept response; None for a call of a model
    kept: KeptRequest | None = None
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
    #: names of the fields, tools and items that were not sent to the provider in the last attempt
    lost: dict[str, None] = {}
    #: whether the provider adds an unknown number of tokens to the input
    fills_context: bool = False


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
    #: set for calls of the Responses API only
    native: NativeOptions | None = None
    #: names of the fields that a provider of the same dialect did not receive
    lost: dict[str, None] = {}
    #: the files of a call that is a form; `body` has its other fields
    files: tuple[FilePart, ...] = ()
    is_form: bool = False
    #: the format of a complete answer
    answer_form: Literal["json", "text", "binary"] = "json"
