"""Policy rules: conditions over a request and each model that could answer it, and what follows (decisions of the
contract: Policy engine).

    enabled <-> disabled     `enabled`; a disabled rule is as good as absent
    any      -> removed      DELETE

Looked at in ascending `priority`, of equals the oldest first, until a terminal rule matches. None is in force while the
configuration `governance_enabled` is false. Conditions are tried on a request that is described (`trying`), drafts of
rules on recorded ones (`replaying`).
"""
