"""Scans complete texts and texts that arrive in pieces."""
