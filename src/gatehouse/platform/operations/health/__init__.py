"""Health: probes, the system's components, metrics (docs/operations.md).

probes      /health, /api/health/*, /metrics: for machines, without a credential, from memory only
routes      /api/admin/system/*: for administrators
components  the components of the system's health, one function each
checks      checks that `gatehouse doctor` and a running worker share
diagnosis   the result of those that a running worker makes
summary     metrics of the last hour, from the usage records
patience    a time-out for work that may ignore cancellation
"""
