"""Choosing among candidates and getting an answer from one: cost, circuits, attempts."""
