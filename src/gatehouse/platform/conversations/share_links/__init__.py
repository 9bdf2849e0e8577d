"""Share links: read access to a conversation for everyone who has the link (docs/conversations.md, Sharing).

    active -> revoked     DELETE; the link is still listed
    any    -> removed     when its conversation is deleted

A link shows the current state of the conversation. It shows nothing if it is revoked, if its owner is deactivated or
deleted, or if the organization is deleted. Links are looked up by the SHA-256 digest of their token. The token itself
is stored sealed, because the owner can list it.
"""
