"""Model aliases of an organization: model names of its own, with the deployments that answer for them
(docs/deployments.md).

    created -> deleted     DELETE

An alias is active while it is enabled. `policy_records.py` contributes the enabled aliases to the policy.
"""
