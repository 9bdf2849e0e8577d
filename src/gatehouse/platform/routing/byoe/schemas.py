"""Bodies of the byoe endpoints."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from gatehouse.foundation.http.bodies import Body
from gatehouse.platform.routing.fields import Line, ModelId, PricePerThousand, Slug
from gatehouse.platform.routing.model_catalog.schemas import NewCapabilities, Tokens
from gatehouse.platform.routing.providers.schemas import MaxRetries, TimeoutMs

Format = Literal["openai", "anthropic"]
BaseUrl = Annotated[str, Field(max_length=2048, examples=["https://models.example.com/v1"])]


class ByoeModel(Body):
    """Costs are USD per 1,000 tokens; the catalog shows them per token."""

    model_id: ModelId
    display_name: Annotated[Line, Field(examples=["Our 8B model"])]
    context_window: Tokens
    input_cost_per_1k: PricePerThousand
    output_cost_per_1k: PricePerThousand
    max_output_tokens: Tokens | None = None
    capabilities: Annotated[
        NewCapabilities | None,
        Field(description="What the model can do: routing policies and requests ask for it. Left out: as it was."),
    ] = None

    @model_validator(mode="after")
    def _one_window(self) -> Self:
        if self.capabilities is not None and self.capabilities.max_context_window not in {None, self.context_window}:
            raise ValueError("capabilities.max_context_window: must be the same as context_window")
        return self


class ByoeConfig(Body):
    """The same fields as beside it: as the provider's answer shows them."""

    base_url: BaseUrl | None = None
    format: Format | None = None
    timeout_ms: TimeoutMs | None = None
    max_retries: MaxRetries | None = None


def _each_once(models: list[ByoeModel] | None) -> None:
    names = [model.model_id for model in models or ()]
    if len(names) != len(set(names)):
        raise ValueError("models: a model_id stands there twice")


Models = Annotated[list[ByoeModel], Field(min_length=1, max_length=500)]


class NewByoe(Body):
    id: Slug
    name: Annotated[Line, Field(examples=["Our own models"])]
    base_url: BaseUrl
    format: Annotated[Format, Field(description="Which requests the endpoint understands.")]
    models: Models
    api_key: Annotated[str | None, Field(description="Stored sealed, never returned.")] = None
    timeout_ms: TimeoutMs = 30_000

    @model_validator(mode="after")
    def _models_once(self) -> Self:
        _each_once(self.models)
        return self


class ByoeUpdate(Body):
    """Partial: what is left out stays. `api_key` null removes the key."""

    name: Annotated[Line | None, Field(examples=["Our own models"])] = None
    base_url: BaseUrl | None = None
    format: Format | None = None
    models: Annotated[Models | None, Field(description="The new list, whole.")] = None
    api_key: str | None = None
    timeout_ms: TimeoutMs | None = None
    max_retries: MaxRetries | None = None

    config: Annotated[ByoeConfig | None, Field(description="The same fields together, as answers show them.")] = None

    @model_validator(mode="after")
    def _models_once(self) -> Self:
        _each_once(self.models)
        twice = self.model_fields_set & (set() if self.config is None else self.config.model_fields_set)
        if twice:
            raise ValueError(f"{min(twice)}: is in config, too")
        return self

    def configured(self, name: str) -> Any:
        """A field of the configuration, wherever it was sent; None: it was not."""
        value = getattr(self, name)
        return getattr(self.config, name) if value is None and self.config is not None else value
