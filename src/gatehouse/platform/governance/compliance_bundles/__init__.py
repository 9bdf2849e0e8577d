"""Compliance bundles: the entity types that an organization monitors for a regulatory framework, and statistics about
them (docs/compliance.md).

    active    <-> archived       POST archive, POST activate
    enabled   <-> disabled       PUT enabled
              -> acknowledged    POST acknowledge; a change of framework, version or entity types resets it

While a bundle is active and enabled, the patterns of its entity types apply with at least the action `redact`.
Each transition emits the event `bundle_state_change`.
"""
