"""Samples of an organization's own requests, on which drafts of its rules are replayed (docs/dlp-replay.md).

    kept -> labelled     PUT `labels`: a reviewer labels the entity types in the sample, and the expected action of
                         policy rules
    any  -> removed      DELETE; at the maximum age (`organization.dlp_sampling`); or with its user or organization

The gateway seals samples and writes them through the journal. The audit chain records each read of their contents.
"""
