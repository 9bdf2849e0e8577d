"""The signed bundle that an outpost receives."""
