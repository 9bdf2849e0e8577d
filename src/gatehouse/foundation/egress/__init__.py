"""Addresses that outbound requests may reach, and the resolution of host names."""
