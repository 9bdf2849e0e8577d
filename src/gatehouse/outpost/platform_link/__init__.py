"""The outpost's connections to the platform, the portal and its peers."""
