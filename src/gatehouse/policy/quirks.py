"""Quirks: the ways in which a provider differs from the API whose dialect it speaks (docs/providers.md)."""

from typing import Final, Literal, TypeAlias

import msgspec

#: the header that contains the key
KeyHeader: TypeAlias = Literal["authorization", "x-api-key", "api-key"]
LimitField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
#: Fields of a chat that a quirk can remove. An answer without them is still an answer to the request.
RemovableField: TypeAlias = Literal[
    "frequency_penalty", "logit_bias", "logprobs", "metadata", "modalities", "parallel_tool_calls", "prediction",
    "presence_penalty", "reasoning_effort", "safety_identifier", "seed", "service_tier", "stop", "store",
    "temperature", "top_k", "top_logprobs", "top_p", "user", "verbosity",
]  # fmt: skip


class Quirks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """None: as the dialect's own API, or, in an administrator's quirks, as the preset."""

    key_header: KeyHeader | None = None
    #: the field that limits the output tokens
    limit_field: LimitField | None = None
    #: false: messages of the role `developer` are sent as `system`
    developer_role: bool | None = None
    #: false: `stream_options` is not sent, and the usage of streams is estimated
    stream_options: bool | None = None
    #: false: the names of messages are not sent
    message_names: bool | None = None
    #: false: `reasoning_content` of earlier answers is not sent
    reasoning_content: bool | None = None
    #: whether converted bodies have a `prompt_cache_key`
    prompt_cache_key: bool | None = None
    removed_fields: tuple[RemovableField, ...] | None = None
    #: the path of reranking at the provider's host, instead of `/rerank` below the base URL
    rerank_path: str | None = None

    def over(self, base: "Quirks | None") -> "Quirks":
        """Return these quirks, and those of `base` where these are None."""
        return self if base is None else msgspec.structs.replace(base, **self.own)

    @property
    def own(self) -> dict[str, object]:
        """The quirks that are not None, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


NO_QUIRKS: Final = Quirks()
