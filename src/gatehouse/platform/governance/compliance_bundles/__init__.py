"""Compliance bundles: the entity types that an organization monitors for a regulatory framework, and statistics about
them (docs/compliance.md).

    active    <-> archived       POST archive, POST activate
    enabled   <-> disabled       PUT enabled
              -> acknowledged    POST acknowledge; reset when framework, version or entity types change

A bundle that is active and enabled puts the patterns of its entity types in force with at least `redact`. Each
transition is announced as `bundle_state_change`.
"""
