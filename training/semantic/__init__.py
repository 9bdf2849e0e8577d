"""Trains the embedded model of the semantic tier: `python -m training.semantic --help`, from the repository's root."""
