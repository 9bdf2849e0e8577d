"""Parameters of the portal's routes: callers, sessions and changes."""
