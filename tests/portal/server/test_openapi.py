"""The portal's OpenAPI document: secrets, bodies and errors."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.portal.scenarios.test_rights import DOCUMENT, OPERATIONS
from tests.support.secret_fields import PORTAL_TELLING, is_secret

BY_NAME = {f"{method} {path}": (method, path, operation) for method, path, operation in OPERATIONS}


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """Returns the names of all fields, at any depth."""
    if (reference := schema.get("$ref")) is not None:
        schema = DOCUMENT["components"]["schemas"][reference.rsplit("/", 1)[1]]
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from fields(inner)
    for item in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        yield from fields(item)


def schemas(parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [content.get("schema", {}) for content in parts.get("content", {}).values()]


@pytest.mark.parametrize("name", BY_NAME)
def test_an_answer_has_the_secret_fields_that_it_may_have_and_no_other(name: str) -> None:
    method, path, operation = BY_NAME[name]
    answers = [schema for answer in operation["responses"].values() for schema in schemas(answer)]
    assert {field for schema in answers for field in fields(schema) if is_secret(field)} == PORTAL_TELLING.get(
        (method, path), set()
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_an_operation_is_described_and_its_errors_have_the_portals_form(name: str) -> None:
    _, path, operation = BY_NAME[name]
    assert operation["description"]
    if path.startswith("/v1/") and "security" in operation:
        failures = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        assert {"401", "403", "422", "429"} <= set(failures)
        for answer in failures.values():
            assert schemas(answer) == [{"$ref": "#/components/schemas/PortalError"}]


def test_the_command_line_prints_the_document_without_a_database() -> None:
    command = [sys.executable, "-P", "-m", "gatehouse", "openapi", "portal"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == DOCUMENT
