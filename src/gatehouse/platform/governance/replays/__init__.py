"""What replays of drafts have in common, of DLP rules (`dlp_trials`) and of policy rules (`policies`): the samples that
they are tried on, how much of a worker they take, and how they are measured by reviewers' labels.
"""
