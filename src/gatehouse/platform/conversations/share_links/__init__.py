"""Share links: read access to a conversation for everyone with the link (docs/conversations.md, Sharing).

    active -> revoked     DELETE; still listed
    any    -> removed     with its conversation

A link shows the current conversation. It shows nothing if it is revoked, its owner is deactivated or deleted, or the
organization is deleted. Links are looked up by the token's SHA-256. The token is stored sealed, because the owner can
list it.
"""
