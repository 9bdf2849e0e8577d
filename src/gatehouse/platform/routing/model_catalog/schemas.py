"""Bodies of the catalog endpoints: the union of both variants' fields (docs/variants.md)."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Id, ResponseBody, nullable
from gatehouse.platform.routing.fields import Line, ModelId, Price, ShownPrice

Access = Literal["open", "restricted"]
Tokens = Annotated[int, Field(ge=1, le=1_000_000_000, examples=[128_000])]


Use = Annotated[
    bool | None,
    Field(description="Whether the model is for this operation and not for chats. Null: unknown, so calls are tried."),
]


class NewCapabilities(Body):
    """Capabilities that are not sent are unknown, except `streaming`, which is true for chat models. Null makes a
    capability unknown."""

    streaming: bool | None = None
    function_calling: bool | None = None
    vision: bool | None = None
    structured_output: bool | None = None
    embeddings: bool | None = None
    code_execution: bool | None = None
    moderation: Use = None
    rerank: Use = None
    image_generation: Use = None
    transcription: Use = None
    speech: Use = None
    reasoning: Annotated[
        bool | None, Field(description="Whether the model accepts a reasoning effort. Null: inferred from its name.")
    ] = None
    max_context_window: Annotated[Tokens | None, Field(description="The same as `context_window`.")] = None


class _ModelFields(Body):
    """The fields of creations and changes. `supports_vision` is the same as `capabilities.vision`."""

    display_name: Annotated[Line | None, Field(examples=["GPT-4o mini"])] = None
    context_window: Tokens | None = None
    max_output_tokens: Tokens | None = None
    supports_vision: bool | None = None
    capabilities: Annotated[
        NewCapabilities | None, Field(description="Only capabilities that are sent are changed.")
    ] = None
    cost_per_input_token: Annotated[Price | None, Field(description="USD per token; null: unknown.")] = None
    cost_per_output_token: Annotated[Price | None, Field(description="USD per token; null: unknown.")] = None
    cost_per_cached_input_token: Annotated[Price | None, Field(description="Null: the input price.")] = None
    cost_per_cache_write_token: Annotated[Price | None, Field(description="Null: the input price.")] = None
    is_active: bool = True
    is_default: bool = False
    access: Annotated[Access, Field(description="`restricted`: only callers with a grant may use it.")] = "open"


class NewModel(_ModelFields):
    provider: Annotated[str, Field(min_length=1, max_length=63, examples=["openai"])]
    model_id: ModelId


@nullable
class ModelUpdate(_ModelFields):
    """Fields that are not sent keep their values. Null removes a name, a number or a price."""

    provider: Annotated[str | None, Field(description="Cannot change.")] = None
    model_id: Annotated[str | None, Field(description="Cannot change.")] = None


class BulkUpdate(Body):
    model_ids: Annotated[
        list[Id],
        Field(
            max_length=10_000,
            description="Unknown ids are ignored.",
            examples=[["0192f3c4-5d6e-7f80-9123-456789abcdef"]],
        ),
    ]
    is_active: bool


class Capabilities(ResponseBody):
    """The capabilities of a model. Null means unknown."""

    streaming: bool | None = None
    function_calling: bool | None = None
    vision: bool | None = None
    structured_output: bool | None = None
    embeddings: bool | None = None
    code_execution: bool | None = None
    moderation: bool | None = None
    rerank: bool | None = None
    image_generation: bool | None = None
    transcription: bool | None = None
    speech: bool | None = None
    reasoning: bool | None = None
    max_context_window: int | None = None


class ModelConfig(ResponseBody):
    id: UUID
    provider: str
    model_id: str
    display_name: str | None
    is_active: bool
    is_default: bool
    access: Access
    created_at: datetime
    updated_at: datetime
    context_window: int | None
    max_output_tokens: int | None
    supports_vision: Annotated[bool | None, Field(description="Null: unknown.")]
    capabilities: Capabilities
    cost_per_input_token: ShownPrice | None
    cost_per_output_token: ShownPrice | None
    cost_per_cached_input_token: ShownPrice | None
    cost_per_cache_write_token: ShownPrice | None
    price_source: Annotated[
        Literal["administrator", "known_models", "price_file"] | None,
        Field(
            description="Who or what set the prices: an administrator, the data of this version, or a file"
            " (`gatehouse prices update -f`). Null: there are none."
        ),
    ]
    price_recorded_on: Annotated[
        date | None, Field(description="The day on which the data was recorded, if data set the prices.")
    ]


Sort = Literal[
    "model_id",
    "-model_id",
    "provider",
    "-provider",
    "context_window",
    "-context_window",
    "cost_per_input_token",
    "-cost_per_input_token",
    "cost_per_output_token",
    "-cost_per_output_token",
    "created_at",
    "-created_at",
]


class ModelsPage(ResponseBody):
    """The list in variant A."""

    items: list[ModelConfig]
    total: int
    page: int
    per_page: int


class ModelsPageB(ResponseBody):
    """The list in variant B."""

    items: list[ModelConfig]
    total: int
    page: int
    page_size: int


class DiscoveredModel(ResponseBody):
    """A provider's model. Values that the provider does not state are taken from the known models (docs/providers.md).
    Null means that the value is unknown there too."""

    provider: str
    model_id: str
    display_name: str
    already_in_catalog: bool
    context_window: int | None
    supports_vision: bool | None
    max_tokens: int | None
    supports_streaming: bool | None
    cost_per_input_token: ShownPrice | None
    cost_per_output_token: ShownPrice | None


class AddedModel(ResponseBody):
    provider: str
    model_id: str


class SyncResult(ResponseBody):
    """The result of a sync in variant A."""

    added: int
    skipped: Annotated[int, Field(description="Discovered models that are already in the catalog.")]
    added_models: list[AddedModel]
