"""Matches of patterns in a text, their context words and how far they may extend."""
