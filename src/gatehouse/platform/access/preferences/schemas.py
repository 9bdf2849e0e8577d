"""Bodies of the preferences' endpoints (reference 2, User preferences)."""

from typing import Annotated, Literal

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent

Theme = Literal["system", "light", "dark"]
#: As calls name models. Whether it is there, and for this user, is known when it is called.
ModelName = Annotated[
    str, Field(min_length=1, max_length=319, pattern=r"^[^\s\x00-\x1f\x7f]+$", examples=["openai/gpt-4o-mini"])
]


class PreferencesUpdate(Body):
    """What is left out stays; null clears a model. `avatar_url` cannot be set here."""

    default_model_id: Annotated[ModelName | None, Field(description="For conversations that name no model.")] = None
    preferred_models: Annotated[list[ModelName], Field(default_factory=unsent, max_length=100)]
    default_summarizer_model_id: ModelName | None = None
    theme: Annotated[Theme, Field(default_factory=unsent)]


class Preferences(Shown):
    default_model_id: str | None
    preferred_models: list[str]
    default_summarizer_model_id: str | None
    theme: Theme
    avatar_url: Annotated[
        str | None,
        Field(description="Where the picture is; it takes a credential of the same organization to get it."),
    ]
