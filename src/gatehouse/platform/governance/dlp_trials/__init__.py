"""Trying out: what a pattern would find (`test`), what the organization's policy does about a text (`evaluate`), what a
draft of it would do about many (`replay`). Nothing is stored, and nothing changes (reference 3, Endpoints, DLP rules).

All of it asks what requests ask: the compiled policy, the same tiers, the same decision.
"""
