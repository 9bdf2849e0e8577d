"""Providers: the accounts and servers at which an organization calls models (docs/providers.md).

    active        -> disabled       PUT status with `enabled` false, and back with true
    active        -> unhealthy      `failure_threshold` consecutive failed health checks
    unhealthy     -> active         `recovery_threshold` consecutive successful ones
    any           -> kill_switched  while it, or every model of it, is kill-switched

If several statuses apply, the first of kill_switched, disabled, unhealthy and active is shown.

A provider is created when its credentials are set. If its id is the name of a kind (`openai`, `anthropic`, `ollama`,
...), it is a provider of that kind. With any other id, the body must contain a `kind`, or the `base_url` of an
OpenAI-compatible endpoint. `byoe` creates a provider together with its models.

    health    the state machine, pure          probe     calls a provider outside of requests
    service   changes providers                schedule  the health checks of all organizations, run by the keeper
    presets   services and servers by name
"""
