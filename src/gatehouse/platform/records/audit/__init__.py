"""Audit events: who did what, when, to what, with which outcome (reference 1, GET /v1/audit/events).

Each tenant has one chain: an event's hash covers the hash before it, so that nothing can be changed, dropped or
slipped in without `gatehouse audit verify` saying where. Sequence and hash are given under one lock per tenant at
commit, so a reader that follows the sequence never skips an event. Here it is read and verified; `platform.chain`
writes it.
"""
