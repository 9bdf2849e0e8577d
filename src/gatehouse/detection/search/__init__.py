"""Searches a text for the matches of patterns and for their context words, and computes how far a match may extend."""
