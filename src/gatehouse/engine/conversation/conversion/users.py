"""Converts ids of end users for providers that limit their length."""

import hashlib


def lost_user(user: str | None, max_characters: int) -> frozenset[str]:
    """Return the feature `user` if `short_user` replaces the id by a hash."""
    return frozenset() if user is None or len(user) <= max_characters else frozenset({"user"})


def short_user(user: str, max_characters: int) -> str:
    """Return the id, or a hash of an id that is longer than the provider's limit. The same id has the same hash."""
    if len(user) <= max_characters:
        return user
    return "user_" + hashlib.sha256(user.encode(errors="surrogatepass")).hexdigest()[:48]
