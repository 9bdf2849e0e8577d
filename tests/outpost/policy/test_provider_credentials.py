"""Providers' credentials from an outpost's environment (docs/outposts.md)."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore
from gatehouse.outpost.policy.provider_credentials import LocalSecrets
from gatehouse.policy.catalog import CredentialRecord, ProviderRecord

TENANT = TenantId(UUID(int=1))


class NoBundle(BundleStore):
    in_force = None

    def __init__(self) -> None:
        pass


def test_variables_of_one_account_are_not_those_of_another_with_a_shorter_name() -> None:
    environment = {
        "PROVIDER_AZURE_API_KEY": "first", "PROVIDER_AZURE_EU_API_KEY": "second", "PROVIDER_OPENAI_EU_API_KEY": "third",
        "PROVIDER_MAX_CONNECTIONS": "7",
    }  # fmt: skip
    secrets = LocalSecrets(NoBundle(), environment)
    opened = {name: dict(secrets.open(TENANT, name, None)) for name in ("azure", "azure-eu", "openai", "openai-eu")}
    assert opened == {
        "azure": {"api_key": "first"},
        "azure-eu": {"api_key": "second"},
        "openai": {},
        "openai-eu": {"api_key": "third"},
    }


def test_credentials_of_other_ways_of_authentication_are_read() -> None:
    document = '{"client_email": "a",\n "private_key": "b"}\n'
    environment = {
        "PROVIDER_VERTEX_AI_SERVICE_ACCOUNT_KEY": document, "PROVIDER_BEDROCK_API_KEY": "ABSK",
        "PROVIDER_AZURE_OPENAI_ENTRA_CLIENT_SECRET": "s",
    }  # fmt: skip
    secrets = LocalSecrets(NoBundle(), environment)
    assert secrets.open(TENANT, "vertex_ai", None) == {"service_account_key": document}
    assert secrets.open(TENANT, "bedrock", None) == {"api_key": "ABSK"}
    assert secrets.open(TENANT, "azure_openai", None) == {"entra_client_secret": "s"}


class OneBundle(NoBundle):
    """A bundle with these providers, whose credentials are sealed in it."""

    def __init__(self, *provider_ids: str) -> None:
        self.replace(*provider_ids)

    def replace(self, *provider_ids: str) -> None:
        credentials = SimpleNamespace(of=lambda provider_id: {"api_key": f"sealed for {provider_id}"})
        second = CredentialRecord(label="second")
        providers = {
            provider_id: ProviderRecord(id=provider_id, name="", kind="openai", credentials=(second,))
            for provider_id in provider_ids
        }
        in_force: Any = SimpleNamespace(snapshot=SimpleNamespace(providers=providers), credentials=credentials)
        self.in_force = in_force


def test_variables_of_two_providers_of_the_bundle_are_ignored() -> None:
    environment = {"PROVIDER_AZURE_OPENAI_API_KEY": "first", "PROVIDER_OPENAI_API_KEY": "second"}
    bundles = OneBundle("azure_openai", "azure-openai", "openai")
    secrets = LocalSecrets(bundles, environment)
    for provider_id in ("azure_openai", "azure-openai"):
        assert secrets.open(TENANT, provider_id, None) == {"api_key": f"sealed for {provider_id}"}
    assert secrets.open(TENANT, "openai", None) == {"api_key": "second"}
    # The variables are unambiguous again once a bundle has only one of the two.
    bundles.replace("azure_openai", "openai")
    assert secrets.open(TENANT, "azure_openai", None) == {"api_key": "first"}


def test_further_credentials_have_their_own_variables() -> None:
    environment = {"PROVIDER_OPENAI_API_KEY": "first", "PROVIDER_OPENAI__SECOND_API_KEY": "second"}
    secrets = LocalSecrets(OneBundle("openai"), environment)
    opened = [dict(secrets.open(TENANT, name, None)) for name in ("openai", "openai/second")]
    assert opened == [{"api_key": "first"}, {"api_key": "second"}]
    # A provider whose id gives it the same variables gets none of them.
    secrets = LocalSecrets(OneBundle("openai", "openai--second"), environment)
    assert secrets.open(TENANT, "openai/second", None) == {}
    assert secrets.open(TENANT, "openai--second", None) == {"api_key": "sealed for openai--second"}


def test_a_provider_with_variables_gets_no_credential_from_the_bundle() -> None:
    secrets = LocalSecrets(OneBundle("openai", "mistral"), {"PROVIDER_OPENAI_API_KEY": "first"})
    assert secrets.open(TENANT, "openai/second", None) == {}
    assert secrets.open(TENANT, "mistral/second", None) == {"api_key": "sealed for mistral/second"}
