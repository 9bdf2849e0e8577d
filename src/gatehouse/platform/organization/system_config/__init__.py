"""System configuration: named values of an organization (docs/settings.md).

The value of an entry is the organization's own value, or else the value of the environment variable with the name of
the key, or else the built-in default. Platform-wide values are set only in the environment. They are shown, but cannot
be changed.
"""
