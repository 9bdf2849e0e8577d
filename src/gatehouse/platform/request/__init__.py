"""Parameters of routes: callers, sessions, entity tags, and the parts of the worker."""
