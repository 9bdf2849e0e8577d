"""Organization tokens. They are signed and not stored. They are refused after they have expired or have been revoked
(docs/portal.md, "Tokens").

issued -> revoked      all tokens of the organization, by the time of their issue; or a single token, by its `jti`
"""
