"""Token bounds, cost estimates and budget refusals of model calls."""
