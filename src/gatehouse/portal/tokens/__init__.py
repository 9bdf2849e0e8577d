"""Organization tokens: signed, not stored; refused once their time is over or they are revoked (reference 1,
Authentication, 5).

    issued -> revoked      with all of the organization, by time; or alone, by `jti`
"""
