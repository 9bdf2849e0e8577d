"""Health: probes, the system's components, figures (reference 3, Health and system).

probes      /health, /api/health/*, /metrics: for machines, without a credential, from memory alone
routes      /api/admin/system/*: for administrators
components  what the system's health is made of, a function a component
summary     the last hour in figures, from the usage records
"""
