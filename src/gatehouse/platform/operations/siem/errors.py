"""Errors of the SIEM endpoints."""

from gatehouse.foundation.errors import Conflict, Forbidden


class SiemNotConfigured(Conflict):
    code = "siem_not_configured"
    message = "There is no receiver yet: PUT /api/v1/admin/siem first."


class FileIsForOperators(Forbidden):
    code = "siem_file_is_for_operators"
    message = "The type file writes to the server's disk: only an operator of the platform may choose it."
