"""The identity of a service account, and that of a machine at Google Cloud."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.engine.providers.conftest import call, candidate
from tests.support.upstream import Connection, upstream
from tests.support.vendors.google_cloud import CLAUDE, CONFIG, EMAIL, KEY, GoogleCloud

from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.authentication.google import SCOPE, GoogleTokens, normalized_key
from gatehouse.engine.providers.credentials import InvalidCredentials, read_credentials

PLACE = {"use_instance_role": True, **CONFIG}
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q"


def pem(key: Any) -> str:
    none = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none).decode()


class Federation(GoogleCloud):
    """Google Cloud with the service that exchanges tokens of other identity providers."""

    def __init__(self, subject_token: str) -> None:
        super().__init__()
        self.subject_token = subject_token
        self.impersonated: list[dict[str, Any]] = []

    async def __call__(self, connection: Connection) -> None:
        path = connection.head.split(" ")[1]
        if path == "/sts":
            form = {name: values[0] for name, values in parse_qs(connection.body.decode()).items()}
            assert form == {
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "audience": AUDIENCE,
                "scope": SCOPE,
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "subject_token": self.subject_token,
            }
            await self.answer_token(connection)
        elif path == "/impersonate:generateAccessToken":
            assert connection.headers["authorization"] == f"Bearer {self.tokens[-1]}"
            self.impersonated.append(json.loads(connection.body))
            self.tokens.append("ya29.impersonated")
            body = {"accessToken": "ya29.impersonated", "expireTime": "2099-01-01T00:00:00Z"}
            await connection.answer(json.dumps(body).encode())
        else:
            await super().__call__(connection)


def external_account(url: str, source: dict[str, Any], **more: str) -> str:
    account = {
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": f"{url}/sts",
        "credential_source": source,
    }
    return json.dumps({**account, **more})


async def answers(ask: Any, url: str) -> None:
    await ask(call(), candidate("vertex_ai", CLAUDE, base_url=url, **PLACE), secret={})


async def test_the_metadata_server_is_asked_for_the_machines_token(ask, monkeypatch) -> None:
    cloud = GoogleCloud()
    cloud.tokens.append("ya29.of-the-machine")
    seen: list[tuple[str, str, Mapping[str, str]]] = []

    async def metadata(method: str, url: str, headers: Mapping[str, str]) -> bytes:
        seen.append((method, url, headers))
        return b'{"access_token": "ya29.of-the-machine", "expires_in": 3599, "token_type": "Bearer"}'

    monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, request=metadata))
    async with upstream(cloud) as server:
        await answers(ask, server.url)
    path = "/computeMetadata/v1/instance/service-accounts/default/token"
    assert seen == [("GET", f"http://169.254.169.254{path}", {"Metadata-Flavor": "Google"})]


async def test_the_file_of_a_service_account_comes_first(ask, monkeypatch, tmp_path) -> None:
    file = tmp_path / "key.json"
    file.write_text(json.dumps(KEY, indent=2))
    async with upstream(GoogleCloud()) as server:
        environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
        google = GoogleTokens(environment, token_url=f"{server.url}/token")
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", google)
        await answers(ask, server.url)


@pytest.mark.parametrize("source", ["text", "json", "url"])
@pytest.mark.parametrize("impersonates", [False, True])
async def test_a_token_of_another_identity_provider_is_exchanged(
    ask, monkeypatch, tmp_path, source, impersonates
) -> None:
    token, file = tmp_path / "token", tmp_path / "federation.json"
    token.write_text("subject.token\n" if source == "text" else '{"id": {}, "value": "subject.token"}')
    sources: dict[str, Any] = {
        "text": {"file": str(token)},
        "json": {"file": str(token), "format": {"type": "json", "subject_token_field_name": "value"}},
        "url": {"url": "http://169.254.169.254/identity", "headers": {"Metadata": "true"}},
    }

    async def metadata(method: str, url: str, headers: Mapping[str, str]) -> bytes:
        assert (method, url, headers) == ("GET", "http://169.254.169.254/identity", {"Metadata": "true"})
        return b"subject.token"

    cloud = Federation("subject.token")
    async with upstream(cloud) as server:
        url = f"{server.url}/impersonate:generateAccessToken"
        more = {"service_account_impersonation_url": url} if impersonates else {}
        file.write_text(external_account(server.url, sources[source], **more))
        environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens(environment, request=metadata))
        await answers(ask, server.url)
    assert cloud.impersonated == ([{"scope": [SCOPE], "lifetime": "3600s"}] if impersonates else [])


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{}",
        '{"type": "authorized_user"}',
        external_account("http://203.0.113.9", {"file": "{token}"}),
        external_account("https://sts.test", {"file": "/no/such/file"}),
        external_account("https://sts.test", {"executable": {"command": "x"}}),
        external_account("https://sts.test", {"file": "{token}", "format": {"type": "json"}}),
    ],
)
async def test_a_machine_without_an_identity_is_a_failure_of_the_provider(ask, monkeypatch, tmp_path, content) -> None:
    token, file = tmp_path / "token", tmp_path / "credentials.json"
    token.write_text("subject.token")
    if content is not None:
        file.write_text(content.replace("{token}", str(token)))
    monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}))
    async with upstream(GoogleCloud()) as server:
        with pytest.raises(ProviderFailed, match="no_instance_role") as failed:
            await answers(ask, server.url)
    assert failed.value.move_on


def test_only_the_used_fields_of_a_key_are_stored() -> None:
    stored = json.loads(normalized_key(json.dumps(KEY, indent=2)))
    assert stored.keys() == {"client_email", "private_key", "private_key_id", "type"}
    assert stored["client_email"] == EMAIL


@pytest.mark.parametrize("as_text", [False, True])
def test_a_key_is_accepted_as_text_and_as_an_object(as_text) -> None:
    body = {"service_account_key": json.dumps(KEY) if as_text else KEY, **CONFIG}
    read = read_credentials(KINDS["vertex_ai"], body)
    assert read.config == {**CONFIG, "use_instance_role": False}
    assert json.loads(read.secret["service_account_key"])["private_key"] == KEY["private_key"]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "not json",
        7,
        [],
        {},
        {**KEY, "type": "authorized_user"},
        # A federation names files and addresses, which only the operator may do.
        json.loads(external_account("https://sts.test", {"file": "/etc/passwd"})),
        {**KEY, "private_key": "-----BEGIN PRIVATE KEY-----\nno\n-----END PRIVATE KEY-----\n"},
        {**KEY, "private_key": pem(ec.generate_private_key(ec.SECP256R1()))},
        {**KEY, "private_key": pem(rsa.generate_private_key(65537, 1024))},
    ],
)
def test_an_invalid_key_names_the_field_and_nothing_of_the_key(key) -> None:
    with pytest.raises(Exception) as refused:
        read_credentials(KINDS["vertex_ai"], {"service_account_key": key, **CONFIG})
    if isinstance(refused.value, InvalidCredentials):
        (fault,) = refused.value.faults
        assert fault.field == "service_account_key"
        assert "PRIVATE" not in fault.message
        assert "passwd" not in fault.message
    else:
        assert refused.value.extra == {"missing": ["service_account_key"]}


async def test_the_token_address_in_a_service_account_key_is_not_used(ask, monkeypatch) -> None:
    """An organization would choose where the platform sends a request."""
    cloud, other = GoogleCloud(), GoogleCloud()
    async with upstream(cloud) as server, upstream(other) as elsewhere:
        monkeypatch.setattr(KINDS["vertex_ai"], "_tokens", GoogleTokens({}, token_url=f"{server.url}/token"))
        key = json.dumps({**KEY, "token_uri": f"{elsewhere.url}/token"})
        place = candidate("vertex_ai", CLAUDE, base_url=server.url, **CONFIG)
        await ask(call(), place, secret={"service_account_key": key})
        assert elsewhere.requests == []
