"""Bring your own endpoint: a provider and its models in one body (reference 3, Endpoints, Providers, byoe).

    POST    makes the provider and an active catalog entry for each model
    PATCH   changes it; a list of models is the new list: what it lacks becomes inactive
    DELETE  removes the provider; its models stay in the catalog, inactive

Its credentials, config, status and health are those of any provider.
"""
