"""Outposts of an organization, and their certificates (docs/portal.md, "Outposts").

    (none) -> active          POST; certificate and key are shown once, and the portal stores no copy of the key
    active -> stale           no heartbeat for five minutes
    stale  -> active          a heartbeat
    any    -> revoked         DELETE; final: all its certificates become invalid, and its name may be used again

A renewal issues a new certificate. The previous certificate remains valid for one day. The portal sends the valid
certificates to the platform (`jobs`) after each change, and every thirty seconds, because certificates also expire.
"""
