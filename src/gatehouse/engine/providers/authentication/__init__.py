"""Access tokens for providers that accept no fixed key: fetched from the cloud's token endpoint, cached, and renewed in
the background before they expire.

Settings of an organization cannot name a file or an address from which a token is read. Only the operator's environment
names such sources, and only operators may set `use_instance_role`, which uses them.
"""
