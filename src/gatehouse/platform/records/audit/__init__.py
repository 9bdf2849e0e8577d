"""Audit events: actor, time, action, resource and outcome of every change and request (docs/records.md).

Each tenant has one chain: an event's hash covers the previous event's hash, so `gatehouse audit verify` finds every
changed, removed or inserted event. Sequence and hash are assigned under one lock per tenant at commit, so a reader that
follows the sequence never skips an event. This package reads and verifies the chain; `platform.changes.chain` writes
it.
"""
