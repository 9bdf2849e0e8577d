"""The setting for storing samples of an organization's requests. Drafts of rules are replayed on these samples
(docs/dlp-replay.md).

off <-> on     PUT `share`
"""
