"""Audit events: the actor, time, action, resource and outcome of every change and request (docs/records.md).

Each tenant has one chain: the hash of an event covers the hash of the previous event, so `gatehouse audit verify` finds
every changed, removed or inserted event. The sequence and the hash are assigned at commit, under one lock for each
tenant. So a reader that follows the sequence never skips an event. This package reads and verifies the chain, and
`platform.changes.chain` writes it.
"""
