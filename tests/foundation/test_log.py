import io
import json
import logging

import pytest
import structlog

from gatehouse.foundation import jwt, log
from gatehouse.foundation.log import REDACTED, configure, redacted
from gatehouse.foundation.secrets import tokens

# This key has only the form of an API key, and was never issued.
KEY = "gk_" + "Ab3" * 12 + "xy"
JWT = jwt.sign({"sub": "u1"}, jwt.SigningKey.generate())


@pytest.fixture
def lines():
    handlers, level = logging.root.handlers[:], logging.root.level
    out = io.StringIO()
    configure("info", out)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    structlog.reset_defaults()
    logging.root.handlers, logging.root.level = handlers, level


def test_a_line_is_one_json_object_with_the_requests_id(lines):
    token = log.request_id.set("r-1")
    structlog.get_logger().info("ready\nsecond line", port=8000)
    log.request_id.reset(token)
    structlog.get_logger().debug("not shown")
    [line] = lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "ready\nsecond line", "level": "info", "port": 8000, "request_id": "r-1"}


def test_lines_of_libraries_have_the_same_form(lines):
    logging.getLogger("uvicorn.error").info("listening on %s", "127.0.0.1")
    logging.getLogger("alembic.runtime").warning("token Bearer %s", KEY)
    first, second = lines()
    assert (first["event"], first["logger"], first["level"]) == ("listening on 127.0.0.1", "uvicorn.error", "info")
    assert KEY not in json.dumps(second)


def test_each_request_is_not_logged_twice(lines):
    logging.getLogger("uvicorn.access").info("GET /")
    assert lines() == []


@pytest.mark.parametrize("prefix", ["inv_", "pwr_", "rt_", "mfa_", "gws_", "gsb_", "gac_", "gat_", "gcs_", "scim_"])
def test_every_minted_credential_is_redacted(lines, prefix):
    minted = tokens.mint_token(prefix).plaintext
    structlog.get_logger().info(f"opened with {minted}, from a browser", shown=minted)
    [line] = lines()
    assert minted not in json.dumps(line)
    assert line["event"].endswith(f"{REDACTED}, from a browser")


@pytest.mark.parametrize(
    "name",
    [
        "password", "new_password", "secret", "client_secret", "Authorization", "cookie", "set-cookie", "api_key",
        "X-API-Key", "token", "access_token", "mfa_token", "private_key", "credentials", "gatehouse_master_key",
        "SAMLResponse", "otp", "cloud_secret_access_key", "hosted_api_key",
    ],
)  # fmt: skip
def test_a_value_with_the_name_of_a_secret_is_redacted(lines, name):
    structlog.get_logger().info("x", **{name: "hunter2", "nested": [{name: 1234}]})
    [line] = lines()
    assert line[name] == REDACTED
    assert line["nested"] == [{name: REDACTED}]


@pytest.mark.parametrize(
    "name", ["input_tokens", "token_type", "api_key_id", "key_prefix", "token_id", "mfa_assertion_ttl_seconds", "path"]
)
def test_a_harmless_name_keeps_its_value(lines, name):
    structlog.get_logger().info("x", **{name: 7})
    assert lines()[0][name] == 7


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"key {KEY} is bad", KEY[3:]),
        (f"Authorization: Bearer {JWT}", JWT[10:40]),
        (f"saw {JWT}", JWT[10:40]),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("using sk-proj-abcDEF123_456", "abcDEF123"),
        ("using sk-ant-api03-xyz_123", "xyz_123"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
        ("postgresql://app:hunter2@db/x failed", "hunter2"),
        ("redis://:hunter2@cache:6379", "hunter2"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIhunter2\n-----END RSA PRIVATE KEY-----", "hunter2"),
        ('{"password": "hunter2"}', "hunter2"),
        ("client_id=1&password=hunter2&x=1", "hunter2"),
        ("invitation inv_" + "h" * 43, "hhhh"),
    ],
)
def test_a_text_with_the_form_of_a_secret_is_redacted(text, secret):
    assert secret not in redacted(text)
    assert REDACTED in redacted(text)


@pytest.mark.parametrize("text", ["a task-based ask", "bearer of news", "https://example.com/a@b", "skip sk-", "gk_"])
def test_other_text_is_not_changed(text):
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["Bearer " * 5000, "://" * 20_000, "eyJ" * 20_000, "-----BEGIN " * 5000, "password=" * 5000, "gk_" * 20_000]
)
def test_a_hostile_text_is_truncated(text):
    assert len(redacted(text)) < 40_000


def test_a_traceback_shows_no_secret(lines):
    def login(password):
        raise RuntimeError(f"cannot reach postgresql://app:{password}@db")

    secret = "hunter" + "2"  # two literals, because a traceback quotes the source
    try:
        login(secret)
    except RuntimeError:
        structlog.get_logger().exception("failed")
    [line] = lines()
    assert "RuntimeError" in line["exception"]
    assert secret not in json.dumps(line)


def test_deep_and_binary_values_are_logged(lines):
    deep: dict = {}
    for _ in range(100):
        deep = {"x": deep}
    structlog.get_logger().info("x", deep=deep, raw=b"hunter2", thing=object(), odd="\ud800"[:0], keys={1: {2}})
    [line] = lines()
    assert line["raw"] == "<7 bytes>"
    assert line["keys"] == {"1": [2]}
