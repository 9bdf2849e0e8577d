"""Detects sensitive data in texts, in three tiers. This package does not depend on tenants, rules or requests.

patterns    regular expressions with validators and context words, over normalised views of the text
entities    a small model that recognizes people, organizations and places
semantic    a small model that recognizes topics, prompt injection and jailbreaks

`gatehouse.engine.dlp` decides which action to take for a finding.
"""
