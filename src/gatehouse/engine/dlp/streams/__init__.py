"""Inspection of streamed answers."""
