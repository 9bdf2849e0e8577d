"""Policy rules: a condition on a request and each candidate model, and the action if it is true (docs/policies.md).

    enabled <-> disabled     `enabled`; a disabled rule has no effect
    any      -> removed      DELETE

Rules are evaluated in ascending `priority` until a terminal rule matches; rules of equal priority by age, oldest first.
No rule is active while the configuration `governance_enabled` is false. `trying` evaluates rules on a described
request, `replaying` evaluates drafts on recorded requests.
"""
