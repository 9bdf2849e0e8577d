"""Share links: a conversation for everybody who has the link, to read (reference 2, Share link).

    active -> revoked     DELETE; stays in listings
    any    -> removed     with its conversation

What a link shows is the conversation as it is now. It shows nothing once it is revoked, or its owner is deactivated or
gone, or the organization has ended. Looked up by the token's SHA-256; the token itself is sealed, because the owner may
list it.
"""
