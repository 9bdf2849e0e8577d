"""DLP rules: an organization's own detectors, and the action on each finding (docs/dlp-rules.md).

    enabled <-> disabled     `enabled`; a disabled rule has no effect
    any      -> removed      DELETE; its versions are kept

Each change writes a version. A `regex` rule without `config_json.pattern` replaces the platform's rules for the
built-in patterns of its entity type. Names need not be unique. An import matches rules by name.
"""
