"""The operations of models, and what differs between them for the pipeline."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from gatehouse.policy.routing import ModelUse

#: the operations; `count_tokens` and `kept_response` return no answer of a model
Operation: TypeAlias = Literal[
    "chat", "embeddings", "count_tokens", "completions", "moderations", "rerank", "image_generation", "image_edit",
    "image_variation", "transcription", "translation", "speech", "kept_response",
]  # fmt: skip


class OperationTraits(msgspec.Struct, frozen=True, kw_only=True):
    """The traits of an operation."""

    #: the name of the operation in messages about what a provider offers
    title: str
    #: the path of its calls in messages
    paths: str
    use: ModelUse
    #: a call costs nothing
    is_free: bool = False
    #: the model produces tokens that are charged as output
    has_output_tokens: bool = False
    #: the body has a field that limits the output tokens
    has_output_limit: bool = False
    #: the answer has texts that DLP inspects and samples contain
    has_output_text: bool = False
    #: the cost of a call is estimated from its size if the provider reports no usage
    has_estimated_cost: bool = True
    #: the response cache may store its answers
    is_cacheable: bool = True


OPERATIONS: Final[Mapping[Operation, OperationTraits]] = {
    "chat": OperationTraits(
        title="chats",
        paths="/v1/chat/completions",
        use="chat",
        has_output_tokens=True,
        has_output_limit=True,
        has_output_text=True,
    ),
    "completions": OperationTraits(
        title="text completions",
        paths="/v1/completions",
        use="chat",
        has_output_tokens=True,
        has_output_limit=True,
        has_output_text=True,
    ),
    "embeddings": OperationTraits(title="embeddings", paths="/v1/embeddings", use="embeddings"),
    "count_tokens": OperationTraits(
        title="token counts",
        paths="/v1/messages/count_tokens",
        use="chat",
        is_free=True,
        is_cacheable=False,
    ),
    "kept_response": OperationTraits(
        title="stored responses",
        paths="/v1/responses/{response_id}",
        use="chat",
        is_free=True,
        has_output_text=True,
        is_cacheable=False,
    ),
    "moderations": OperationTraits(title="moderations", paths="/v1/moderations", use="moderation"),
    "rerank": OperationTraits(title="reranking", paths="/v1/rerank", use="rerank", has_output_text=True),
    "image_generation": OperationTraits(
        title="image generation",
        paths="/v1/images/generations",
        use="image_generation",
        has_output_tokens=True,
        has_output_text=True,
        has_estimated_cost=False,
        is_cacheable=False,
    ),
    "image_edit": OperationTraits(
        title="image edits",
        paths="/v1/images/edits",
        use="image_generation",
        has_output_tokens=True,
        has_output_text=True,
        has_estimated_cost=False,
        is_cacheable=False,
    ),
    "image_variation": OperationTraits(
        title="image variations",
        paths="/v1/images/variations",
        use="image_generation",
        has_output_tokens=True,
        has_output_text=True,
        has_estimated_cost=False,
        is_cacheable=False,
    ),
    "transcription": OperationTraits(
        title="transcriptions",
        paths="/v1/audio/transcriptions",
        use="transcription",
        has_output_tokens=True,
        has_output_text=True,
        has_estimated_cost=False,
        is_cacheable=False,
    ),
    "translation": OperationTraits(
        title="translations of recordings",
        paths="/v1/audio/translations",
        use="transcription",
        has_output_tokens=True,
        has_output_text=True,
        has_estimated_cost=False,
        is_cacheable=False,
    ),
    "speech": OperationTraits(title="speech", paths="/v1/audio/speech", use="speech", is_cacheable=False),
}
