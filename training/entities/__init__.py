"""Trains the embedded model of the entities tier: `python -m training.entities --help`, from the repository's root."""
