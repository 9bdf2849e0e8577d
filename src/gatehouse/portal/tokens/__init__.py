"""Organization tokens: signed, not stored; refused after they expire or are revoked (docs/portal.md, "Tokens").

issued -> revoked      with all tokens of the organization, by time; or alone, by `jti`
"""
