"""The bundle in force, and its callers, credentials and switches."""
