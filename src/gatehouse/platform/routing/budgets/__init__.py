"""Budgets: limits on what an organization, group, user, key or client spends in a minute, a day or a month
(docs/budgets.md). `platform.spending` enforces them."""
