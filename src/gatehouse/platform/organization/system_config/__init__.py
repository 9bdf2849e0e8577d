"""System configuration: an organization's named values (reference 2, System configuration entry).

What an organization did not set follows the environment variable of the key's name, else the built-in default.
Values that hold for the whole platform are set in the environment alone: they are shown, and not editable.
"""
