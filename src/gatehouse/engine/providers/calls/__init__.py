"""One attempt at a provider, by the kind of its operation."""
