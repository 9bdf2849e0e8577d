"""Changes: each is one transaction with its audit events, its revision and its outgoing events."""
