"""Scanning of whole texts and of texts that arrive in pieces."""
