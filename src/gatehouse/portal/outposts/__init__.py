"""Outposts of an organization, and their certificates (reference 2, Outpost; decisions 8, Outposts).

    (none) -> active          POST; certificate and key are told once, the portal keeps no copy of the key
    active -> stale           not seen for five minutes
    stale  -> active          a heartbeat
    any    -> revoked         DELETE; final: none of its certificates is good any more, and its name is free

A renewal issues another certificate, and the one before is good for a day. Which certificates are good, the portal
tells the platform (`jobs`): on each change, and every thirty seconds whether something has changed or not: time ends
certificates, too.
"""
