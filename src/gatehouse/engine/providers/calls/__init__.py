"""One attempt at a provider: a module for each kind of operation."""
