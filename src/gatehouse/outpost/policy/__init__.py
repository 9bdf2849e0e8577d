"""The active bundle, and its callers, credentials and switches."""
