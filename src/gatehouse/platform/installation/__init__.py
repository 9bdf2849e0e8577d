"""An installation: preflight, first start, backup, restore, diagnosis and re-sealing."""
