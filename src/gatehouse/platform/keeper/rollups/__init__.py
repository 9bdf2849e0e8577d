"""Totals of the requests in a batch by day, minute, model and budget."""
