"""The organization: its tenant row, its settings, flags and configuration (reference 2)."""
