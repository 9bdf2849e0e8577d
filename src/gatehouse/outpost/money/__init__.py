"""The outpost's budgets: amounts spent, leases from peers, and what is on disk."""
