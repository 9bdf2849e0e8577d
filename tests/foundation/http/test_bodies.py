"""The common behaviour of all bodies."""

from typing import Any

import pytest
from pydantic import Field, ValidationError

from gatehouse.foundation.http.bodies import Body, nullable, omitted, partial, without


class Inner(Body):
    name: str


class Example(Body):
    text: str | None = None
    words: list[str] = Field(default_factory=list)
    values: dict[str, Any] = Field(default_factory=dict)
    inner: Inner | None = None
    kept: str = Field(default_factory=omitted)


class Creation(Body):
    slug: str
    name: str
    note: str | None = None
    size: int = 1


@partial
@without("slug")
class Update(Creation):
    enabled: bool = Field(default_factory=omitted)


@nullable
@without("slug")
class NullableUpdate(Creation):
    enabled: bool | None = None


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"text": "a\0"}, ("text",)),
        ({"words": ["a", "\0"]}, ("words",)),
        ({"values": {"a": {"b": ["\0"]}}}, ("values",)),
        ({"values": {"\0": 1}}, ("values",)),
        ({"inner": {"name": "\0"}}, ("inner",)),
        ({"kept": None}, ("kept",)),
        ({"kpet": "x"}, ("kpet",)),
    ],
)
def test_a_bad_field_is_named(body: dict[str, Any], loc: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as raised:
        Example.model_validate(body)
    assert [error["loc"][: len(loc)] for error in raised.value.errors()] == [loc]


def test_nul_is_detected_in_values_nested_more_deeply_than_the_stack() -> None:
    for innermost, is_valid in (("x", True), ("\0", False)):
        deep: list[Any] = [innermost]
        for _ in range(10_000):
            deep = [deep]
        if is_valid:
            Example.model_validate({"values": {"a": deep}})
        else:
            with pytest.raises(ValidationError, match="NUL"):
                Example.model_validate({"values": {"a": deep}})


def test_an_update_contains_only_the_sent_fields() -> None:
    assert Example.model_validate({"text": None}).sent() == {"text": None}
    assert Example.model_validate({}).sent() == {}
    assert "default" not in Example.model_json_schema()["properties"]["kept"]


def test_an_update_has_the_fields_of_the_creation_except_for_the_fixed_ones() -> None:
    schema = Update.model_json_schema()
    assert list(schema["properties"]) == ["name", "note", "size", "enabled"]
    assert "required" not in schema
    assert Update.model_validate({}).sent() == {}
    assert Update.model_validate({"note": None, "size": 2}).sent() == {"note": None, "size": 2}
    assert set(Creation.model_fields) == {"slug", "name", "note", "size"}


@pytest.mark.parametrize(
    ("body", "field"), [({"slug": "a"}, "slug"), ({"name": None}, "name"), ({"size": "2"}, "size")]
)
def test_a_bad_field_of_an_update_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Update.model_validate(body)
    assert [error["loc"] for error in raised.value.errors()] == [(field,)]


def test_a_nullable_update_takes_null_for_every_field() -> None:
    body = {"name": None, "note": None, "size": None, "enabled": None}
    assert NullableUpdate.model_validate({}).model_dump() == NullableUpdate.model_validate(body).model_dump() == body
    assert NullableUpdate.model_validate({"size": 2}).size == 2
    schema = NullableUpdate.model_json_schema()
    assert "required" not in schema
    assert schema["properties"]["size"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert schema["properties"]["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    with pytest.raises(ValidationError):
        NullableUpdate.model_validate({"size": "2"})
    assert Creation.model_fields["size"].default == 1
