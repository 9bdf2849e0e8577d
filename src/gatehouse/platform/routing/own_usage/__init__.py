"""A user's own usage: requests, tokens and cost by day and model, and what is left of the budgets that the user's calls
count against (docs/records.md)."""
