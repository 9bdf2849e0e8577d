"""Errors of invalid fields, with the same text on every gateway path."""

from typing import Any

import pytest
from tests.support.platform import Tenant

HI = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "param", "message"),
    [
        ("/v1/chat/completions", {**HI, "top_p": "hot"}, "top_p", "`top_p` must be a number, not a string."),
        ("/v1/chat/completions", {**HI, "stream": 1}, "stream", "`stream` must be true or false, not a whole number."),
        ("/v1/chat/completions", {"model": "m"}, "messages", "`messages` is required."),
        ("/v1/chat/completions", {**HI, "messages": 5}, "messages", "`messages` must be a list, not a whole number."),
        ("/v1/embeddings", {"model": "m", "input": []}, "input", "`input` must have at least 1 entry."),
        ("/v1/embeddings", {"model": "m", "input": {}}, "input", "`input` must be a string or a list, not an object."),
        ("/v1/scan", {}, "text", "`text` is required."),
        ("/v1/scan", {"text": 5}, "text", "`text` must be a string, not a whole number."),
        ("/v1/scan", {"text": "x" * 1_000_001}, "text", "`text` must have at most 1000000 characters."),
        ("/v1/scan", {"text": "x", "model": []}, "model", "`model` must be a string, not a list."),
    ],
)  # fmt: skip
async def test_a_bad_field_is_named_in_plain_words(
    tenant: Tenant, path: str, body: dict[str, Any], param: str, message: str
) -> None:
    answer = await tenant.admin.client.post(path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", param)
    assert error["message"] == message


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/scan"])
@pytest.mark.parametrize(
    ("body", "code"),
    [(b'{"text', "invalid_json"), (b"[]", "invalid_json"), (b'{"a": \xff}', "invalid_json"), (b"{a}", "invalid_json"),
     (b'{"text":' + b"[" * 200 + b"]" * 200 + b"}", "nested_too_deep")],
)  # fmt: skip
async def test_invalid_json_has_the_same_error_on_every_path(tenant: Tenant, path: str, body: bytes, code: str) -> None:
    answer = await tenant.admin.client.post(path, content=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, code)
    assert not any(word in error["message"] for word in ("msgspec", "Input data", "malformed", "Expected"))
