"""Providers' credentials from an outpost's environment (docs/outposts.md)."""

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
