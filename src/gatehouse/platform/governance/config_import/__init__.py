"""Imports an outpost's configuration into an organization (docs/moving-to-the-cloud.md): the document that its
`GET /admin/config/export` returns.

    patterns            built-in patterns exist already; others must be among the custom patterns, or are `missing`
    dlp_rules, custom_patterns, suppressions, compliance_bundles, content_filters
                        created; an existing one of the same name is not changed
    group_overrides     imported for groups that exist
    overrides           local to the outpost, not imported

Valid records are imported. Errors are reported with their path in the document. The import is idempotent.
"""
