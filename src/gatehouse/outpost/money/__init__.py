"""The outpost's budgets: spent amounts in memory and on disk, and leases between peers."""
