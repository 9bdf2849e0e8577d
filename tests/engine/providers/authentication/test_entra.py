"""Tokens of Microsoft Entra ID for Azure OpenAI: of an application, and of a machine."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from tests.engine.providers.conftest import call, candidate
from tests.engine.providers.wires import OPENAI_REPLY
from tests.support.upstream import Connection, upstream

from gatehouse.engine.providers import KINDS, ProviderFailed
from gatehouse.engine.providers.authentication.entra import EntraTokens, cloud_of
from gatehouse.engine.providers.credentials import InvalidCredentials, MissingCredentials, read_credentials

DIRECTORY = "11111111-2222-3333-4444-555555555555"
CLIENT = "66666666-7777-8888-9999-000000000000"
APPLICATION = {"entra_tenant_id": DIRECTORY, "entra_client_id": CLIENT}
SECRET = {"entra_client_secret": "abc8Q~very-secret"}
SCOPE = "https://cognitiveservices.azure.com/.default"
TOKEN = "eyJ0eXAi.eyJhdWQi.c2lnbmF0dXJl"


class Azure:
    """A resource of Azure OpenAI and the authority that issues its tokens."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.forms: list[dict[str, str]] = []
        self.calls = 0

    async def __call__(self, connection: Connection) -> None:
        path = connection.head.split(" ")[1]
        if path == f"/{DIRECTORY}/oauth2/v2.0/token":
            self.forms.append({name: values[0] for name, values in parse_qs(connection.body.decode()).items()})
            body = {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
            await connection.answer(json.dumps(body).encode(), status=self.status)
            return
        assert connection.headers["authorization"] == f"Bearer {TOKEN}"
        assert "api-key" not in connection.headers
        self.calls += 1
        await connection.answer(b'{"data": [{"id": "our-gpt"}]}' if path.count("/") == 2 else OPENAI_REPLY)


@pytest.fixture
async def served(monkeypatch):
    azure = Azure()
    async with upstream(azure) as server:
        azure.url = server.url
        monkeypatch.setattr(KINDS["azure_openai"], "_tokens", EntraTokens({}, authority=server.url))
        yield azure


async def test_an_application_authenticates_with_its_secret(ask, served) -> None:
    place = candidate("azure_openai", "our-gpt", hosted_endpoint=served.url, **APPLICATION)
    for _ in range(3):
        await ask(call(), place, secret=SECRET)
    assert served.calls == 3
    assert served.forms == [
        {
            "grant_type": "client_credentials",
            "scope": SCOPE,
            "client_id": CLIENT,
            "client_secret": SECRET["entra_client_secret"],
        }
    ]


async def test_deployments_are_listed_with_the_token(outbound, served) -> None:
    place = candidate("azure_openai", hosted_endpoint=served.url, **APPLICATION)
    (model,) = await KINDS["azure_openai"].list_models(outbound, place.provider, SECRET)
    assert model.model_id == "our-gpt"


async def test_a_refused_secret_is_a_failure_of_the_provider(ask, served) -> None:
    served.status = 401
    place = candidate("azure_openai", "our-gpt", hosted_endpoint=served.url, **APPLICATION)
    with pytest.raises(ProviderFailed, match="unauthorized") as failed:
        await ask(call(), place, secret=SECRET)
    assert failed.value.move_on


async def test_a_workload_identity_authenticates_with_its_token_file(ask, served, monkeypatch, tmp_path) -> None:
    file = tmp_path / "token"
    file.write_text("assertion\n")
    environment = {
        "AZURE_FEDERATED_TOKEN_FILE": str(file),
        "AZURE_CLIENT_ID": CLIENT,
        "AZURE_TENANT_ID": DIRECTORY,
        "AZURE_AUTHORITY_HOST": f"{served.url}/",
    }
    monkeypatch.setattr(KINDS["azure_openai"], "_tokens", EntraTokens(environment))
    place = candidate("azure_openai", "our-gpt", hosted_endpoint=served.url, use_instance_role=True)
    await ask(call(), place, secret={})
    (form,) = served.forms
    assert form == {
        "grant_type": "client_credentials",
        "scope": SCOPE,
        "client_id": CLIENT,
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": "assertion",
    }


@pytest.mark.parametrize(
    ("environment", "url", "headers", "query"),
    [
        (
            {},
            "http://169.254.169.254/metadata/identity/oauth2/token",
            {"Metadata": "true"},
            {"api-version": "2018-02-01"},
        ),
        (
            {"AZURE_CLIENT_ID": CLIENT},
            "http://169.254.169.254/metadata/identity/oauth2/token",
            {"Metadata": "true"},
            {"api-version": "2018-02-01", "client_id": CLIENT},
        ),
        (
            {"IDENTITY_ENDPOINT": "http://127.0.0.1:42356/msi/token", "IDENTITY_HEADER": "word"},
            "http://127.0.0.1:42356/msi/token",
            {"X-IDENTITY-HEADER": "word"},
            {"api-version": "2019-08-01"},
        ),
    ],
)
async def test_a_token_of_a_managed_identity_is_requested(
    ask, served, monkeypatch, environment, url, headers, query
) -> None:
    seen = []

    async def metadata(method: str, address: str, sent: Mapping[str, str]) -> bytes:
        parts = urlsplit(address)
        seen.append((f"{parts.scheme}://{parts.netloc}{parts.path}", sent, dict(parse_qsl(parts.query))))
        return json.dumps({"access_token": TOKEN, "expires_in": "3599", "expires_on": "4000000000"}).encode()

    monkeypatch.setattr(KINDS["azure_openai"], "_tokens", EntraTokens(environment, request=metadata))
    place = candidate("azure_openai", "our-gpt", hosted_endpoint=served.url, use_instance_role=True)
    await ask(call(), place, secret={})
    assert seen == [(url, headers, {**query, "resource": "https://cognitiveservices.azure.com"})]


@pytest.mark.parametrize(
    ("endpoint", "authority", "resource"),
    [
        ("https://x.openai.azure.com", "login.microsoftonline.com", "cognitiveservices.azure.com"),
        ("https://x.openai.azure.us", "login.microsoftonline.us", "cognitiveservices.azure.us"),
        ("https://x.openai.azure.cn", "login.chinacloudapi.cn", "cognitiveservices.azure.cn"),
        ("https://azure.us.example", "login.microsoftonline.com", "cognitiveservices.azure.com"),
    ],
)
def test_a_cloud_is_known_by_its_endpoint(endpoint, authority, resource) -> None:
    assert cloud_of(endpoint) == (f"https://{authority}", f"https://{resource}")


ENDPOINT = {"hosted_endpoint": "https://x.openai.azure.com"}


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({**ENDPOINT}, ["api_key"]),
        ({**ENDPOINT, "entra_client_id": CLIENT}, ["entra_tenant_id", "entra_client_secret"]),
        ({**APPLICATION, **SECRET}, ["hosted_endpoint"]),
    ],
)
def test_missing_credentials_are_those_of_the_chosen_way(body, missing) -> None:
    with pytest.raises(MissingCredentials) as refused:
        read_credentials(KINDS["azure_openai"], body)
    assert refused.value.extra == {"missing": missing}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"api_key": "k", **SECRET}, ["entra_client_secret"]),
        ({"use_instance_role": True, "api_key": "k"}, ["api_key"]),
        ({**APPLICATION, **SECRET, "entra_tenant_id": ".."}, ["entra_tenant_id"]),
        ({**APPLICATION, **SECRET, "entra_client_id": "x"}, ["entra_client_id"]),
    ],
)
def test_bad_credentials_name_the_field(body, fields) -> None:
    with pytest.raises(InvalidCredentials) as refused:
        read_credentials(KINDS["azure_openai"], {**ENDPOINT, **body})
    assert [fault.field for fault in refused.value.faults] == fields
