"""Bodies of the endpoints of the allowed request fields."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gatehouse.foundation.http.bodies import Body, ResponseBody
from gatehouse.platform.organization.tenants.sources import Sources


def _sorted_unique(names: list[str]) -> list[str]:
    return sorted(set(names))


FieldName = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^([A-Za-z_][A-Za-z0-9_.:$-]*|tools\.\*)$",
        description="Name of a field, a hosted tool (`tools.web_search`), or `tools.*` for all hosted tools.",
        examples=["service_tier"],
    ),
]


class RequestFieldsUpdate(Body):
    allowed: Annotated[
        list[FieldName],
        Field(
            max_length=100,
            description="The new list, which replaces the present one.",
            examples=[["service_tier", "tools.mcp"]],
        ),
        AfterValidator(_sorted_unique),
    ]


class RefusedField(ResponseBody):
    field: Annotated[str, Field(examples=["models"])]
    reason: Annotated[str, Field(examples=["names another model"])]


class RequestFields(ResponseBody):
    allowed: Annotated[list[str], Field(examples=[["service_tier", "tools.mcp"]])]
    refused: Annotated[list[RefusedField], Field(description="Fields that are refused unless they are allowed.")]
    unknown_fields: Annotated[
        Literal["pass", "refuse"],
        Field(description="Handling of unknown fields, set by the operator (`UNKNOWN_FIELDS`)."),
    ]
    sources: Annotated[Sources, Field(examples=[{"allowed": "organization", "unknown_fields": "default"}])]
