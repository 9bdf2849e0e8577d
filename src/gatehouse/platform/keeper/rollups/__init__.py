"""Totals of a batch's requests by day, minute, model and budget."""
