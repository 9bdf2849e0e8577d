"""Parameters of routes: callers, sessions, entity tags and the worker's parts."""
