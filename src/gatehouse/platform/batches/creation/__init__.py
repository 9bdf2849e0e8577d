"""Validates the lines of a new batch, estimates what they will use, and stores the batch."""
