"""Selects the rate limit of a request and the counter that counts it."""
