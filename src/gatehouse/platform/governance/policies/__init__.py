"""Policy rules: conditions on a request and each candidate model, and the action if they hold (docs/policies.md).

    enabled <-> disabled     `enabled`; a disabled rule has no effect
    any      -> removed      DELETE

Rules are evaluated in ascending `priority`, equal ones by age, oldest first, until a terminal rule matches. No rule is
in force while the configuration `governance_enabled` is false. `trying` evaluates rules on a described request,
`replaying` evaluates drafts on recorded requests.
"""
