"""The OpenAPI document: every operation has a description, an example of its body if it has one, and its
credentials."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatehouse.engine.conversation.dialects import DIALECTS
from gatehouse.engine.scan import decode
from gatehouse.foundation.http.documentation.openapi30 import downgraded
from gatehouse.ingress.gateway import MODEL_CALLS, SCAN
from gatehouse.ingress.openapi import SCHEMAS, gateway_paths
from gatehouse.platform.worker.app import administration

DOCUMENT: dict[str, Any] = administration()[0].openapi()
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
}
#: the schemas as the documentation page shows them
SHOWN_SCHEMAS: dict[str, Any] = downgraded(DOCUMENT)["components"]["schemas"]
#: Operations that need no credential, or have it in the body or in a cookie (docs/authentication.md).
OPEN = {
    "POST /api/auth/login", "POST /api/auth/register", "POST /api/auth/refresh", "POST /api/auth/password/reset",
    "POST /api/auth/session/token", "POST /api/auth/password/forgot", "POST /api/auth/email/confirm",
    "POST /oauth/token", "GET /.well-known/jwks.json", "GET /health", "GET /api/health/live", "GET /api/health/ready",
    "GET /api/health/startup", "GET /metrics",
    "GET /api/conversations/shared/{token}", "GET /oauth/authorize", "POST /oauth/authorize",
    "GET /.well-known/openid-configuration", "GET /.well-known/oauth-protected-resource/mcp",
    "GET /.well-known/oauth-protected-resource/mcp/{server}",
    "GET /api/saml/metadata", "GET /api/saml/login", "POST /api/saml/acs", "GET /api/saml/slo",
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_described(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.get("summary")
    assert operation.get("description")
    assert operation.get("tags")


@pytest.mark.parametrize("name", [name for name, operation in OPERATIONS.items() if "requestBody" in operation])
def test_a_body_has_an_example(name: str) -> None:
    for content in OPERATIONS[name]["requestBody"]["content"].values():
        assert "example" in content or "examples" in content or _has_example(content["schema"], frozenset())


def _has_example(schema: Any, seen: frozenset[str]) -> bool:
    if not isinstance(schema, dict) or not schema:
        return False
    if schema.get("examples") or "example" in schema:
        return True
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name not in seen and _has_example(DOCUMENT["components"]["schemas"][name], seen | {name})
    below = [*schema.get("properties", {}).values(), schema.get("items")]
    below += [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, ())]
    return any(_has_example(part, seen) for part in below)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_protected_operation_names_its_credentials_and_401(name: str) -> None:
    operation = OPERATIONS[name]
    assert bool(operation.get("security")) == (name not in OPEN)
    if name not in OPEN:
        assert "401" in operation["responses"]


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_to_a_schema() -> None:
    text = json.dumps(DOCUMENT)
    for name in {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
        assert name in DOCUMENT["components"]["schemas"]


def test_the_gateways_paths_are_described() -> None:
    assert {path for path, item in gateway_paths().items() if "post" in item} == {*MODEL_CALLS, SCAN}
    assert set(gateway_paths()) <= set(DOCUMENT["paths"])
    assert set(SCHEMAS) <= set(DOCUMENT["components"]["schemas"])


#: the model calls whose body is no form
JSON_CALLS = [
    path for path in MODEL_CALLS if "multipart/form-data" not in gateway_paths()[path]["post"]["requestBody"]["content"]
]


@pytest.mark.parametrize("path", JSON_CALLS)
def test_the_examples_are_valid_calls(path: str) -> None:
    content = gateway_paths()[path]["post"]["requestBody"]["content"]["application/json"]
    assert content["examples"]
    for example in content["examples"].values():
        call = DIALECTS[MODEL_CALLS[path]].decode(msgspec.json.encode(example["value"]))
        assert call.model == example["value"]["model"]


def test_the_example_of_a_scan_is_a_valid_scan() -> None:
    content = gateway_paths()[SCAN]["post"]["requestBody"]["content"]["application/json"]
    assert decode(msgspec.json.encode(content["example"])).text


@pytest.mark.parametrize("schema", ["ProviderConfigShown", "Provider", "ModelConfig", "OAuthClient", "ApiKey"])
def test_response_fields_are_described(schema: str) -> None:
    assert len(DOCUMENT["components"]["schemas"][schema]["properties"]) > 5


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_a_field_with_a_pattern_has_an_example(name: str) -> None:
    """Without an example, the documentation page generates random text that matches the pattern."""
    for field in SHOWN_SCHEMAS[name].get("properties", {}).values():
        assert "pattern" not in field or "example" in field


def _maximum(schema: dict[str, Any]) -> int:
    """Return the maximum of an integer parameter, also if it has other alternatives such as null."""
    (maximum,) = (choice["maximum"] for choice in schema.get("anyOf", [schema]) if "maximum" in choice)
    return int(maximum)


def test_the_page_lists_the_maximum_of_every_list() -> None:
    rows = {
        f"| `{name}` | `{parameter['name']}` | {schema.get('default', 'all')} | {_maximum(schema)} |"
        for name, operation in OPERATIONS.items()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter["name"] in {"limit", "per_page", "page_size"}
        for schema in (parameter["schema"],)
    }
    assert rows == {
        line for line in Path("docs/variants.md").read_text("utf-8").splitlines() if line.startswith("| `GET ")
    }
