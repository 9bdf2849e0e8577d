"""System configuration: an organization's named values (docs/settings.md).

The value of an entry is the organization's own, or that of the environment variable of the key's name, or the built-in
default. Platform-wide values are set in the environment only: they are shown, but cannot be changed.
"""
