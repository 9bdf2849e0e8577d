"""Access tokens for providers that take no fixed key: fetched from the cloud's token endpoint, cached, and renewed in
the background before they expire.

What an organization sets never names a file or an address that a token is read from. Such sources are in the
environment of the operator only, and only operators may set `use_instance_role`, which uses them.
"""
