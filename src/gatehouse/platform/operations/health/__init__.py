"""Health: probes, the components of the system, and metrics (docs/operations.md).

probes      /health, /api/health/*, /metrics: for machines, without a credential, from memory only
routes      /api/admin/system/*: for administrators
components  the components of the system's health, one function for each
checks      checks that `gatehouse doctor` and a running worker share
diagnosis   the results of the checks that a running worker makes
summary     metrics of the last hour, from the usage records
patience    a timeout for work that may ignore cancellation
"""
