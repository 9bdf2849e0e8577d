"""Decoding of clients' bodies and of providers' answers."""
