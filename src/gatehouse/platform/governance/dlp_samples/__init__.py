"""Samples of an organization's own requests, on which drafts of its rules are replayed (docs/dlp-replay.md).

    kept -> labelled     PUT `labels`: a reviewer names the entity types in it, and the expected action of
                         policy rules
    any  -> removed      DELETE; by age (`organization.dlp_sampling`); with its user or organization

The gateway writes samples sealed, through the journal. Each read of their contents is recorded in the audit chain.
"""
