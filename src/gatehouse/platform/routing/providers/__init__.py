"""Providers: where models are called, an organization's own list (reference 3, Provider; decisions 7).

    active        -> disabled       PUT status, `enabled` false; `enabled` true leads back
    active        -> unhealthy      `failure_threshold` failed health checks in a row
    unhealthy     -> active         `recovery_threshold` good ones in a row
    any           -> kill_switched  while it, or every model of it, is kill-switched

The status shown is the first that holds of kill_switched, disabled, unhealthy, active.

How a provider comes to be: credentials are set on the slug of a kind (`openai`, `anthropic`, `ollama`, ...); or on any
other slug together with a `base_url`, which makes an OpenAI-compatible endpoint of that name; or by `byoe`, which
brings its models along.

    health    the state machine, pure          probe     asks a provider something, and says what came of it
    service   administration's rules           schedule  the health checks of all organizations, run by the keeper
"""
