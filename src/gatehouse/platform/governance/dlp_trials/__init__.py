"""Trials of DLP: test a pattern on a text (`test`), evaluate the active policy on a text (`evaluate`), replay a draft
on many texts (`replay`). Trials store nothing and change nothing (docs/dlp-rules.md, docs/dlp-replay.md).

Trials use the same compiled policy, tiers and decision as requests. `examining` runs the tiers on a text and decides
about the findings. `evaluating` makes the response of an evaluation from this result.
"""
