"""The portal's signing keys and certificate authorities, and their re-sealing under a new master key."""
