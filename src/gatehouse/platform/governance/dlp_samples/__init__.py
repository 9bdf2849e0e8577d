"""Samples of an organization's own requests, on which drafts of its rules are tried (`dlp_trials`, `policies`).

    kept -> labelled     PUT `labels`: a reviewer says which entity types are in it, and what policy
                         rules should have said
    any  -> removed      DELETE; by age (`organization.dlp_sampling`); with its user or organization

The gateway keeps them by way of the journal, sealed; each look at what they say is in the audit chain.
"""
