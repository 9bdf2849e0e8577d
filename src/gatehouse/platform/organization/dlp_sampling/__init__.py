"""The setting for keeping samples of an organization's requests, on which drafts of rules are replayed
(docs/dlp-replay.md).

off <-> on     PUT `share`
"""
