"""The installation of the platform: preflight, first start, backup, restore, diagnosis and re-sealing."""
