"""Errors of tenants."""

from gatehouse.foundation.errors import Conflict


class SlugTaken(Conflict):
    code = "slug_taken"
    message = "slug: another organization uses this slug or has used it."
