"""Tools for regexes of RE2 and Python: search over bytes, syntax, and skeletons."""
