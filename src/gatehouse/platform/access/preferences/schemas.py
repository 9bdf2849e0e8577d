"""Request and response bodies of the preferences' endpoints."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody, omitted

Theme = Literal["system", "light", "dark"]
#: A model's name as in calls. Whether the user may use the model is checked when it is called.
ModelName = Annotated[
    str, Field(min_length=1, max_length=319, pattern=r"^[^\s\x00-\x1f\x7f]+$", examples=["openai/gpt-4o-mini"])
]


class PreferencesUpdate(Body):
    """A partial update: fields that are left out keep their values; null clears a model. `avatar_url` is read-only."""

    default_model_id: Annotated[ModelName | None, Field(description="The model of conversations that name none.")] = (
        None
    )
    preferred_models: Annotated[list[ModelName], Field(default_factory=omitted, max_length=100)]
    default_summarizer_model_id: ModelName | None = None
    theme: Annotated[Theme, Field(default_factory=omitted)]


class Preferences(ResponseBody):
    default_model_id: str | None
    preferred_models: list[str]
    default_summarizer_model_id: str | None
    theme: Theme
    avatar_url: Annotated[
        str | None,
        Field(description="URL of the picture. Reading it requires a credential of the same organization."),
    ]
