"""DLP rules: what an organization looks for by itself, and what is done about it (reference 3, DLP rule).

    enabled <-> disabled     `enabled`; a disabled rule is as good as absent
    any      -> removed      DELETE; its versions stay

Each change writes a version. A `regex` rule without `config_json.pattern` speaks for the built-in patterns of its
entity type, in the place of the platform's rules. Names need not be unique; an import goes by them.
"""
