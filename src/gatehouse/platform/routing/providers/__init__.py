"""Providers: an organization's own list of where models are called (docs/providers.md).

    active        -> disabled       PUT status with `enabled` false; with true back
    active        -> unhealthy      `failure_threshold` consecutive failed health checks
    unhealthy     -> active         `recovery_threshold` consecutive successful ones
    any           -> kill_switched  while it, or every model of it, is kill-switched

Where several apply, the status shown is the first of kill_switched, disabled, unhealthy, active.

A provider is created when credentials are set on the slug of a kind (`openai`, `anthropic`, `ollama`, ...); or on any
other slug with a `kind`, which makes another provider of that kind, or with a `base_url`, which makes an
OpenAI-compatible endpoint of that name; or by `byoe`, together with its models.

    health    the state machine, pure          probe     calls a provider outside of requests
    service   administration's rules           schedule  the health checks of all organizations, run by the keeper
    presets   services and servers by name
"""
