"""Outposts of an organization, and their certificates (docs/portal.md, "Outposts").

    (none) -> active          POST; certificate and key are shown once, and the portal stores no copy of the key
    active -> stale           not seen for five minutes
    stale  -> active          a heartbeat
    any    -> revoked         DELETE; final: all its certificates become invalid, and its name is free

A renewal issues another certificate, and the previous one is valid for another day. The portal sends the valid
certificates to the platform (`jobs`) on each change, and every thirty seconds, because certificates also expire.
"""
