"""Detection of sensitive data in a text, in three tiers. It knows no tenant, rule or request.

patterns    regular expressions with validators and context words, over normalised views of the text
entities    people, organizations, places: a small model
semantic    topics, prompt injection and the like: a small model

`gatehouse.engine.dlp` decides what to do about a finding.
"""
