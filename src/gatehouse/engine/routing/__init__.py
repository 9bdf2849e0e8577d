"""Routing: chooses candidates, and gets an answer from one of them (cost, circuits, attempts)."""
