"""Taking an outpost's configuration over into an organization (reference 1, What the service does, 8): the document
that its `GET /admin/config/export` answers.

    patterns            the standard set is here already; others must be among the custom patterns, or are `missing`
    dlp_rules, custom_patterns, suppressions, compliance_bundles, content_filters
                        made here; where one has the name, it stays as it is
    group_overrides     of groups that are here
    overrides           the outpost's own: it keeps them

What is good is imported, the rest is told by its place in the document; once more changes nothing.
"""
