"""Parts shared by replays of DLP rules (`dlp_trials`) and of policy rules (`policies`): reading recorded samples,
limiting the load on a worker, and scoring drafts against reviewers' labels (docs/dlp-replay.md).
"""
