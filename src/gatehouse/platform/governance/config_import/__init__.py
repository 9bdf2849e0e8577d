"""Imports an outpost's configuration into an organization (docs/moving-to-the-cloud.md): the document that its
`GET /admin/config/export` returns.

    patterns            not imported; a pattern that is neither built in nor a custom pattern is reported as missing
    dlp_rules, custom_patterns, suppressions, compliance_bundles, content_filters
                        created, unless one of the same name exists
    group_overrides     imported for groups that exist
    overrides           local to the outpost, not imported

Valid records are imported. Errors are reported with their path in the document. The import is idempotent.
"""
