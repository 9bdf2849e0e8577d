"""Compares the quality and the cost of the pattern tier with other tools that find secrets and identifiers."""
