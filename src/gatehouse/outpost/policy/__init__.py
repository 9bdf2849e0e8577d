"""The bundle in force and what is read from it: callers, credentials and switches."""
