"""A secret is returned once: only answers to its creation, its rotation or a sign-in have a field for it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.operations import DOCUMENT, OPERATIONS, Operation
from tests.support.secret_fields import SHOWN, TELLING, is_secret


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_answers_have_only_permitted_secret_fields(operation: Operation) -> None:
    assert documented_secrets(operation) == {**TELLING, **SHOWN}.get(operation, set())


def test_the_table_lists_existing_operations() -> None:
    assert {*TELLING, *SHOWN} <= set(OPERATIONS)


@pytest.mark.parametrize(
    "name",
    [
        "password", "new_password", "api_key", "client_secret", "secret", "token", "refresh_token", "id_token",
        "mfa_token", "scim_token", "recovery_codes", "otpauth_uri", "private_key", "client_key", "credentials",
        "cloud_secret_access_key", "webhook_secret", "sp_private_key", "initial_password", "jwt",
    ],
)  # fmt: skip
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "api_key_id", "token_type", "token_id", "key_prefix", "input_tokens", "credentials_configured", "kid", "name",
        "token_lifetime_seconds", "previous_secret_expires_at", "cloud_access_key_id", "hash", "x509_cert",
        "refresh_token_enabled", "refresh_token_ttl_days", "key",
    ],
)  # fmt: skip
def test_a_similar_name_is_not_a_secret(name: str) -> None:
    assert not is_secret(name)


def documented_secrets(operation: Operation) -> set[str]:
    """Return the names of all secret fields that the document defines for the operation's answers."""
    method, path = operation
    answers = DOCUMENT["paths"][path][method.lower()]["responses"].values()
    schemas = [content.get("schema", {}) for answer in answers for content in answer.get("content", {}).values()]
    return {
        name
        for schema in schemas
        for name, field in _fields(schema, frozenset())
        if is_secret(name) and _holds_text(field)
    }


def _fields(schema: dict[str, Any], inside: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property at any depth, with its schema."""
    if (reference := schema.get("$ref")) is not None:
        if reference not in inside:
            yield from _fields(_resolved(schema), inside | {reference})
        return
    for name, field in schema.get("properties", {}).items():
        yield name, field
        yield from _fields(field, inside)
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for item in schema.get(word, ()):
            yield from _fields(item, inside)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _fields(schema[word], inside)


def _holds_text(schema: dict[str, Any]) -> bool:
    if "$ref" in schema:
        schema = _resolved(schema)
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    if alternatives:
        return any(map(_holds_text, alternatives))
    if schema.get("type") == "array":
        return _holds_text(schema.get("items", {}))
    # A schema without a type allows any value.
    return "type" not in schema or schema["type"] == "string"


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return result
