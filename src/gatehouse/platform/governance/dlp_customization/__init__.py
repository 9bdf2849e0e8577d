"""An organization's changes to the pattern tier: suppressions of built-in patterns, and custom patterns
(docs/dlp-rules.md).

    active <-> suppressed      POST and DELETE of a suppression; a compliance bundle can keep a pattern active
    enabled  <-> disabled        `enabled` of a custom pattern
    any       -> removed         DELETE
"""
