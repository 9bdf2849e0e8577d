"""The embedded network that recognizes names."""
