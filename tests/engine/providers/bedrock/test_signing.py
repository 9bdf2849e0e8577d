"""The signer computes the same signatures as botocore's signer."""

from datetime import UTC, datetime
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from gatehouse.engine.providers.bedrock import Bedrock
from gatehouse.engine.providers.bedrock.signing import Scope, SigningIdentity, query_value, signed
from gatehouse.engine.providers.kind import ProviderTarget
from gatehouse.policy.catalog import ProviderConfig

WHEN = datetime(2026, 11, 22, 4, 5, 6, tzinfo=UTC)
HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def botocores(method: str, url: str, body: bytes, token: str | None) -> str:
    request = AWSRequest(method, url, data=body, headers={"Content-Type": "application/json"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda **_: WHEN.replace(tzinfo=None))
        SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, token), "bedrock", "us-east-1").add_auth(request)
    assert request.headers["X-Amz-Date"] == "20261122T040506Z"
    return request.headers["Authorization"]


def ours(method: str, url: str, body: bytes, token: str | None) -> dict[str, str]:
    identity = SigningIdentity(access_key_id="AKIDEXAMPLE", secret_access_key=SECRET, session_token=token)
    return signed(method, url, body, identity=identity, scope=Scope("us-east-1", "bedrock"), when=WHEN)


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("POST", f"{HOST}/model/anthropic.claude-v1:0/converse", b'{"a": 1}'),
        ("POST", f"{HOST}/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/converse-stream", "ä".encode()),
        ("POST", "http://127.0.0.1:8080/model/m/converse", b""),
        ("POST", "https://example.com:443/model/m/converse", b"x"),
        ("GET", f"{HOST}/foundation-models", b""),
        ("GET", f"{HOST}/inference-profiles?maxResults=1000&nextToken={query_value('a/b+c=')}", b""),
        ("GET", f"{HOST}/x?b=2&a=1&a=0&c=", b""),
        ("GET", HOST, b""),
    ],
)
def test_a_signature_is_botocores(method: str, url: str, body: bytes, token: str | None) -> None:
    headers = ours(method, url, body, token)
    assert headers["authorization"] == botocores(method, url, body, token)
    assert headers["x-amz-date"] == "20261122T040506Z"
    assert headers.get("x-amz-security-token") == token


@given(model=st.text(st.characters(min_codepoint=33, exclude_categories=("Cs", "Zs")), min_size=1, max_size=40))
def test_every_models_path_is_sent_as_signed(model: str) -> None:
    """The HTTP client may normalize a URL. If it changed the path, the signature would be invalid."""
    url = Bedrock().endpoint(ProviderTarget("chat", f"m{model}"), ProviderConfig(cloud_region="us-east-1"), {}).url
    assert URL(url).raw_path == url.removeprefix(HOST)
    assert ours("POST", url, b"", None)["authorization"] == botocores("POST", url, b"", None)


@given(value=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1))
def test_any_querys_value_arrives_as_it_was_signed(value: str) -> None:
    assert quote(URL(f"{HOST}/x?t={query_value(value)}").query["t"], safe="-_.~") == query_value(value)


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-gov-west-1", "bedrock-runtime.us-gov-west-1.amazonaws.com"),
        ("eusc-de-east-1", "bedrock-runtime.eusc-de-east-1.amazonaws.eu"),
        ("cn-north-1", "bedrock-runtime.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_region_has_its_host(region: str, host: str) -> None:
    url = Bedrock().endpoint(ProviderTarget("chat", "m"), ProviderConfig(cloud_region=region), {}).url
    assert URL(url).host == host
