"""Compliance bundles: which entity types an organization watches for a framework's sake, and the figures about them
(reference 3, Compliance bundle; decisions of the contract: compliance).

    active    <-> archived       POST archive, POST activate
    enabled   <-> disabled       PUT enabled
              -> acknowledged    POST acknowledge; taken back when what was acknowledged changes

A bundle that is active and enabled puts the patterns of its entity types in force with at least `redact`. Each of these
moves is announced as `bundle_state_change`.
"""
