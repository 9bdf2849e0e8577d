"""Selection of the rate limit and the counter of a request."""
