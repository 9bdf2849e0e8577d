"""Bring your own endpoint: a provider and its models in one body (docs/providers.md).

    POST    creates the provider and an active catalog entry for each model
    PATCH   changes it; `models` is the complete new list: models that are not in it become inactive
    DELETE  removes the provider; its models stay in the catalog, inactive. `DELETE /api/admin/providers/{provider_id}`
            does so for a provider of any kind

Credentials, config, status and health work as for any provider.
"""
