"""An organization's changes to the pattern tier: suppressions of built-in patterns, and custom patterns
(docs/dlp-rules.md).

    in force <-> suppressed      POST and DELETE of a suppression; a compliance bundle can keep a pattern in force
    enabled  <-> disabled        `enabled` of a custom pattern
    any       -> removed         DELETE
"""
