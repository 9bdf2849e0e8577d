"""Budgets: what an organization, a group, a user, a key or a client may spend in a minute, a day or a month
(decisions 7, Budgets). `platform.spending` is what keeps them."""
