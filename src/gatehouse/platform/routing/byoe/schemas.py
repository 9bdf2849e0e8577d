"""Bodies of the byoe endpoints."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gatehouse.foundation.http.bodies import Body, nullable, without
from gatehouse.platform.routing.fields import Line, ModelId, PricePerThousand, Slug
from gatehouse.platform.routing.model_catalog.schemas import NewCapabilities, Tokens
from gatehouse.platform.routing.providers.schemas import ConfigUpdate, MaxRetries, ResponsesApi, TimeoutMs

Format = Literal["openai", "anthropic"]
BaseUrl = Annotated[str, Field(max_length=2048, examples=["https://models.example.com/v1"])]


class ByoeModel(Body):
    """A model of the endpoint. Costs are in USD per 1,000 tokens. The catalog shows them per token."""

    model_id: ModelId
    display_name: Annotated[Line, Field(examples=["Our 8B model"])]
    context_window: Tokens
    input_cost_per_1k: PricePerThousand
    output_cost_per_1k: PricePerThousand
    max_output_tokens: Tokens | None = None
    capabilities: Annotated[
        NewCapabilities | None,
        Field(description="Capabilities that routing policies and requests may require. If not sent, they stay."),
    ] = None

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        if self.capabilities is not None and self.capabilities.max_context_window not in {None, self.context_window}:
            raise ValueError("capabilities.max_context_window: must be the same as context_window")
        return self


class ByoeConfig(ConfigUpdate):
    """The fields of the configuration as one object, in the form of the provider's responses."""

    base_url: BaseUrl | None = None
    format: Format | None = None


class NewByoe(Body):
    id: Slug
    name: Annotated[Line, Field(examples=["Our own models"])]
    base_url: BaseUrl
    format: Annotated[Format, Field(description="The API that the endpoint implements.")]
    models: Annotated[list[ByoeModel], Field(min_length=1, max_length=500)]
    api_key: Annotated[str | None, Field(description="Stored sealed, never returned.")] = None
    timeout_ms: TimeoutMs = 30_000
    responses_api: ResponsesApi = False

    @model_validator(mode="after")
    def _models_once(self) -> Self:
        model_ids = [model.model_id for model in self.models or ()]
        if len(model_ids) != len(set(model_ids)):
            raise ValueError("models: a model_id occurs twice")
        return self


@nullable
@without("id")
class ByoeUpdate(NewByoe):
    """Fields that are not sent stay as they are. `api_key` null removes the key. `models` is the complete new list."""

    max_retries: MaxRetries | None = None
    config: Annotated[ByoeConfig | None, Field(description="The same fields as one object, as in responses.")] = None

    @model_validator(mode="after")
    def _fields_once(self) -> Self:
        duplicates = self.model_fields_set & (set() if self.config is None else self.config.model_fields_set)
        if duplicates:
            raise ValueError(f"{min(duplicates)}: is in config, too")
        return self

    def configured(self, name: str) -> Any:
        """Return a field of the configuration, which may be sent in the body itself or in its `config`; None if it was
        not sent."""
        value = getattr(self, name)
        return getattr(self.config, name) if value is None and self.config is not None else value
