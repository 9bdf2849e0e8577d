"""Encryption at rest, password hashes and random credentials."""
