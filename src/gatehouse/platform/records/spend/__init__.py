"""Spend: requests, tokens and cost by group, user or API key (docs/records.md).

A trigger on the usage records adds the sums of each batch to `spend_deltas`. Every few seconds, background work adds
these sums to `spend_days`, which has one row for each day (UTC), group, user and API key. A list reads both tables
instead of the records, so its cost grows with the number of days and API keys, and not with the number of requests. The
totals of a day are kept for 400 days, even if its records have been archived.
"""
