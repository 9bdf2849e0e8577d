"""Providers' credentials from an outpost's environment (docs/outposts.md)."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.policy.bundle import BundleStore
from gatehouse.outpost.policy.provider_credentials import LocalSecrets

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


class OneBundle(NoBundle):
    """A bundle with these providers, whose credentials are sealed in it."""

    def __init__(self, *provider_ids: str) -> None:
        self.replace(*provider_ids)

    def replace(self, *provider_ids: str) -> None:
        credentials = SimpleNamespace(of=lambda provider_id: {"api_key": f"sealed for {provider_id}"})
        in_force: Any = SimpleNamespace(
            snapshot=SimpleNamespace(providers=dict.fromkeys(provider_ids)), credentials=credentials
        )
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
