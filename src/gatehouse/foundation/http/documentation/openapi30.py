"""Converts OpenAPI 3.1 to 3.0 for the documentation page: the bundled Swagger UI does not read 3.1.

`/openapi.json` stays 3.1. Only constructs that FastAPI writes differently in the two versions are converted.
"""

from typing import Any


def downgraded(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document in OpenAPI 3.0. The original is not changed."""
    copy: dict[str, Any] = _translated(document)
    copy["openapi"] = "3.0.3"
    copy.pop("webhooks", None)
    copy.pop("jsonSchemaDialect", None)
    summary = copy.get("info", {}).pop("summary", None)
    if summary is not None:
        copy["info"].setdefault("description", summary)
    return copy


def _translated(node: Any) -> Any:
    if isinstance(node, list):
        return [_translated(part) for part in node]
    if not isinstance(node, dict):
        return node
    copy = dict(node)
    _null_as_nullable(copy)
    copy = {key: _translated(value) for key, value in copy.items()}
    if copy.get("type") == "null":
        # The value is always null, as in one case of a union.
        del copy["type"]
        copy.update(enum=[None], nullable=True)
    examples = copy.get("examples")
    if isinstance(examples, list):
        # Examples in a list belong to a schema. The examples of a media type are an object, in both versions.
        del copy["examples"]
        if examples:
            copy["example"] = examples[0]
    if "const" in copy and "properties" not in copy:
        copy["enum"] = [copy.pop("const")]
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        # In OpenAPI 3.0 `exclusiveMinimum` is a boolean in addition to `minimum`. `bool` is a subclass of `int`, hence
        # the second test.
        if isinstance(value := copy.get(exclusive), int | float) and not isinstance(value, bool):
            copy[bound], copy[exclusive] = value, True
    if "contentMediaType" in copy:
        copy.pop("contentMediaType")
        copy.setdefault("format", "binary")
    return copy


def _null_as_nullable(schema: dict[str, Any]) -> None:
    """Replaces `null` in the schema's `anyOf` by `nullable`."""
    choices = schema.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        non_null = [choice for choice in choices if choice != {"type": "null"}]
        del schema["anyOf"]
        if len(non_null) == 1 and "$ref" not in non_null[0]:
            schema.update({**non_null[0], **schema})
        elif len(non_null) == 1:
            schema["allOf"] = non_null  # OpenAPI 3.0 ignores all keywords next to a $ref
        else:
            schema["anyOf"] = non_null
        schema["nullable"] = True
