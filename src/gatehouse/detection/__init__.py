"""Text in, findings out: the three tiers of detection (reference 3, DLP rule). Knows no tenant, rule or request.

patterns    regular expressions with validators and context words, over normalised views of the text
entities    people, organizations, places: a small model
semantic    topics, prompt injection and the like: a small model

What is done about a finding is decided elsewhere.
"""
